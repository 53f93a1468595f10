/* SPDX-License-Identifier: Apache-2.0 */
/* What someone else's program does first with an installed octet. */
#include <octet/lab.h>
#include <octet/octet.h>
#include <stdio.h>

int main(void) {
    octet_model *model = NULL;
    octet_status status = octet_model_open("no/such/model", NULL, &model);
    printf("%s %s %d\n", octet_version(), octet_status_name(status), model == NULL);
    return status == OCTET_OK || model != NULL;
}
