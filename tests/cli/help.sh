# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What --help says of the verbs that run models.
octet inspect --help
octet run --help
octet bench --help
octet attribute --help
octet search --help
