/* SPDX-License-Identifier: Apache-2.0 */
/* WebP by libwebp: the demuxer finds the first frame, which is decoded straight into RGB; alpha is dropped, not
 * composited. What the frame leaves of the canvas is black. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "image/codec.h"

/* The canvas that the first chunk states, so that a large one takes no memory. */
static octet_status check_stated_size(const uint8_t *data, size_t size) {
    const uint8_t *kind = data + 12;
    if (size < 30) return OCTET_OK;
    if (memcmp(kind, "VP8X", 4) == 0)
        return oct_image_check_size((uint64_t)(oct_le32(data + 24) & 0xffffff) + 1,
                                    (uint64_t)(oct_le32(data + 26) >> 8) + 1);
    return OCTET_OK; /* the other kinds hold 14 bits a side: the canvas is checked below */
}

static octet_status decode_frame(const WebPIterator *frame, oct_image *image) {
    int right = frame->x_offset + frame->width, bottom = frame->y_offset + frame->height;
    if (frame->x_offset < 0 || frame->y_offset < 0 || right > image->width || bottom > image->height)
        return oct_fail(OCTET_BAD_FORMAT, "WebP frame outside its canvas");
    size_t pixels = (size_t)image->width * (size_t)image->height;
    if (frame->width != image->width || frame->height != image->height) memset(image->rgb, 0, pixels * 3);
    size_t first = (size_t)frame->y_offset * (size_t)image->width + (size_t)frame->x_offset;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return oct_fail(OCTET_INTERNAL, "libwebp of another version");
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->rgb + first * 3;
    config.output.u.RGBA.stride = image->width * 3;
    config.output.u.RGBA.size = (pixels - first) * 3;
    VP8StatusCode code = WebPGetFeatures(frame->fragment.bytes, frame->fragment.size, &config.input);
    if (code == VP8_STATUS_OK && (config.input.width != frame->width || config.input.height != frame->height))
        return oct_fail(OCTET_BAD_FORMAT, "WebP frame of another size than it states");
    if (code == VP8_STATUS_OK) code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    WebPFreeDecBuffer(&config.output);
    if (code == VP8_STATUS_OUT_OF_MEMORY) return oct_fail_memory();
    if (code != VP8_STATUS_OK) return oct_fail(OCTET_BAD_FORMAT, "broken WebP: libwebp's code %d", (int)code);
    return OCTET_OK;
}

static octet_status decode_first(oct_decoded *decoded, const WebPDemuxer *demuxer) {
    WebPIterator frame;
    OCT_TRY(oct_image_make(&decoded->image, WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH),
                           WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT)));
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) return oct_fail(OCTET_BAD_FORMAT, "WebP without a frame");
    octet_status status = decode_frame(&frame, &decoded->image);
    WebPDemuxReleaseIterator(&frame);
    return status;
}

static void read_chunk(const WebPDemuxer *demuxer, const char *name, const uint8_t **data, size_t *size) {
    WebPChunkIterator chunk;
    if (!WebPDemuxGetChunk(demuxer, name, 1, &chunk)) return;
    *data = chunk.chunk.bytes; /* in the file's own memory */
    *size = chunk.chunk.size;
    WebPDemuxReleaseChunkIterator(&chunk);
}

octet_status oct_webp_decode(oct_decoded *decoded, const uint8_t *data, size_t size) {
    if (size < 16 || memcmp(data + 12, "VP8", 3) != 0 || memchr(" XL", data[15], 3) == NULL)
        return oct_fail(OCTET_BAD_FORMAT, "WebP of an unknown kind");
    OCT_TRY(check_stated_size(data, size));
    const WebPData file = {data, size};
    WebPDemuxer *demuxer = WebPDemux(&file);
    if (demuxer == NULL) return oct_fail(OCTET_BAD_FORMAT, "broken or truncated WebP");
    octet_status status = decode_first(decoded, demuxer);
    oct_metadata metadata = {0};
    read_chunk(demuxer, "EXIF", &metadata.exif, &metadata.exif_size);
    read_chunk(demuxer, "XMP ", &metadata.xmp, &metadata.xmp_size);
    if (status == OCTET_OK) decoded->orientation = oct_metadata_orientation(&metadata);
    WebPDemuxDelete(demuxer);
    return status;
}
