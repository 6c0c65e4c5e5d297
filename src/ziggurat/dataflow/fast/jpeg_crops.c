/* Native engine of the fast JPEG path: decode a box of a JPEG at 1/1, 1/2, 1/4 or 1/8 of its size, resize it
 * bilinearly to height x width, and write it into one slot of a batch (N, H, W, 3) uint8, RGB.
 *
 * A plain C interface without Python, called through ctypes, which releases the GIL. It needs libjpeg-turbo (1.5 or
 * newer) for jpeg_crop_scanline and jpeg_skip_scanlines. Everything that comes from a file or from Python is checked
 * before it is used as an index; an error of libjpeg jumps back here and becomes a message. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <jpeglib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ZIGGURAT_ABI 1
#define MESSAGE_BYTES JMSG_LENGTH_MAX
#define CHANNELS 3
#define HALF 64  /* half a gray level, in 1/128 */
#define SHIFT 21 /* 1/128 times 1/16384 */
#define MISALIGNED 9
#define CONTEXT 2 /* pixels beside the box that the smooth upsampling of color looks at */

typedef struct {
    int32_t slot;           /* place in the batch */
    int32_t x, y, w, h;     /* box in the full image; x and y are multiples of `denominator` */
    int32_t denominator;    /* 1, 2, 4 or 8 */
    int32_t flip;           /* mirror left and right */
} Plan;

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    char *message;
} Errors;

typedef struct {
    int32_t left;           /* offset of its left neighbour in `mixed` */
    int32_t weights;        /* of the left (low half) and the right neighbour, in 1/16384 */
} Column;

typedef struct {
    uint8_t *rows[2];       /* the two newest decoded rows, RGB */
    int16_t *mixed;         /* one row between two rows */
    Column *columns;        /* where each output column takes its pixel from */
    size_t row_bytes;       /* room in each of `rows` */
} Scratch;

static void on_error(j_common_ptr cinfo) {
    Errors *errors = (Errors *)cinfo->err;
    (*cinfo->err->format_message)(cinfo, errors->message);
    longjmp(errors->escape, 1);
}

/* A warning means damaged data: the decoder goes on, but the pixels are not to be trusted. */
static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0) {
        if (cinfo->err->num_warnings == 0) (*cinfo->err->format_message)(cinfo, ((Errors *)cinfo->err)->message);
        cinfo->err->num_warnings++;
    }
}

static void be_silent(j_common_ptr cinfo) { (void)cinfo; }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

/* One row between two rows, in 1/128 of a gray level plus HALF: mixed = upper * (1 - share) + lower * share.
 * `share` is in 1/32768. HALF is what rounds the result of mix_columns. */
FOR_EACH_CPU static void mix_rows(const uint8_t *upper, const uint8_t *lower, int16_t share, int16_t *mixed, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int16_t step = (int16_t)((lower[i] - upper[i]) * 128);
        mixed[i] = (int16_t)(upper[i] * 128 + HALF + 2 * (int16_t)((step * share) >> 16));
    }
}

/* One output row: each pixel is left * weights[0] + right * weights[1], in 1/16384. */
static void mix_columns(const int16_t *mixed, const Column *columns, uint8_t *out, int width) {
    int i = 0;
#ifdef __SSE2__
    for (; i + 2 < width; i += 2, out += 2 * CHANNELS) {
        const Column *column = columns + i;
        __m128i first = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(mixed + column[0].left)),
                                           _mm_loadl_epi64((const __m128i *)(mixed + column[0].left + CHANNELS)));
        __m128i second = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(mixed + column[1].left)),
                                            _mm_loadl_epi64((const __m128i *)(mixed + column[1].left + CHANNELS)));
        first = _mm_srai_epi32(_mm_madd_epi16(first, _mm_set1_epi32(column[0].weights)), SHIFT);
        second = _mm_srai_epi32(_mm_madd_epi16(second, _mm_set1_epi32(column[1].weights)), SHIFT);
        __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(first, second), _mm_setzero_si128());
        int32_t pixel = _mm_cvtsi128_si32(bytes); /* its fourth byte is written over by the next pixel */
        memcpy(out, &pixel, 4);
        pixel = _mm_cvtsi128_si32(_mm_srli_si128(bytes, 4));
        memcpy(out + CHANNELS, &pixel, 4);
    }
#endif
    for (; i < width; i++, out += CHANNELS) {
        const int16_t *left = mixed + columns[i].left;
        int32_t right_share = columns[i].weights >> 16, left_share = columns[i].weights & 0xffff;
        for (int c = 0; c < CHANNELS; c++)
            out[c] = (uint8_t)((left[c] * left_share + left[c + CHANNELS] * right_share) >> SHIFT);
    }
}

/* Where output `index` of `outputs` lies among `inputs`: half-pixel centers, clamped to the box. */
static int neighbour(int index, int outputs, int inputs, double *share) {
    double place = (index + 0.5) * inputs / outputs - 0.5;
    if (place < 0) place = 0;
    int first = (int)place;
    if (first > inputs - 2) first = inputs > 1 ? inputs - 2 : 0;
    *share = inputs > 1 ? (place - first > 1 ? 1 : place - first) : 0;
    return first;
}

static void free_scratch(Scratch *scratch) {
    free(scratch->rows[0]);
    free(scratch->rows[1]);
    free(scratch->mixed);
    free(scratch->columns);
}

static int prepare_rows(Scratch *scratch, size_t pixels) {
    size_t bytes = pixels * CHANNELS + MISALIGNED + 1;
    if (bytes <= scratch->row_bytes) return 1;
    free(scratch->rows[0]);
    free(scratch->rows[1]);
    free(scratch->mixed);
    scratch->row_bytes = 0;
    scratch->rows[0] = calloc(bytes, 1);
    scratch->rows[1] = calloc(bytes, 1);
    scratch->mixed = calloc(bytes + 8, sizeof *scratch->mixed);
    if (!scratch->rows[0] || !scratch->rows[1] || !scratch->mixed) return 0;
    scratch->row_bytes = bytes;
    return 1;
}

static int refuse(char *message, const char *reason) {
    snprintf(message, MESSAGE_BYTES, "%s", reason);
    return 0;
}

static int is_valid(const struct jpeg_decompress_struct *cinfo, const Plan *plan) {
    int32_t d = plan->denominator;
    return (d == 1 || d == 2 || d == 4 || d == 8) && plan->x >= 0 && plan->y >= 0 && plan->w > 0 && plan->h > 0 &&
           plan->x % d == 0 && plan->y % d == 0 && (uint32_t)plan->x < cinfo->image_width &&
           (uint32_t)plan->y < cinfo->image_height && (uint32_t)plan->w <= cinfo->image_width - (uint32_t)plan->x &&
           (uint32_t)plan->h <= cinfo->image_height - (uint32_t)plan->y;
}

/* libjpeg-turbo writes rows that are aligned to 16 or 32 bytes past the cache, and we read them at once: misalign them. */
static int read_row(struct jpeg_decompress_struct *cinfo, uint8_t *row) {
    JSAMPROW place = row + MISALIGNED;
    return jpeg_read_scanlines(cinfo, &place, 1) == 1;
}

/* Decode the box, row by row, and mix each output row as soon as its two rows are there. */
static int decode_box(struct jpeg_decompress_struct *cinfo, const Plan *plan, Scratch *scratch, uint8_t *out, int height,
                      int width, char *message) {
    if (jpeg_read_header(cinfo, TRUE) != JPEG_HEADER_OK) return refuse(message, "it has no image");
    if (!is_valid(cinfo, plan)) return refuse(message, "the box does not lie in the image");
    int32_t d = plan->denominator;
    cinfo->out_color_space = JCS_RGB;
    cinfo->scale_num = 1;
    cinfo->scale_denom = (unsigned)d;
    cinfo->do_block_smoothing = FALSE;
    jpeg_start_decompress(cinfo);
    if (cinfo->output_components != CHANNELS) return refuse(message, "it does not decode to RGB");
    JDIMENSION x = (JDIMENSION)(plan->x / d), y = (JDIMENSION)(plan->y / d);
    JDIMENSION w = (JDIMENSION)((plan->w + d - 1) / d), h = (JDIMENSION)((plan->h + d - 1) / d);
    if (x + w > cinfo->output_width || y + h > cinfo->output_height) return refuse(message, "the box is too large");
    JDIMENSION from = x > CONTEXT ? x - CONTEXT : 0;
    JDIMENSION columns = (x + w + CONTEXT < cinfo->output_width ? x + w + CONTEXT : cinfo->output_width) - from;
    if (columns < cinfo->output_width) jpeg_crop_scanline(cinfo, &from, &columns);
    if (from > x || from + columns < x + w) return refuse(message, "its part was not decoded");
    if (!prepare_rows(scratch, cinfo->output_width)) return refuse(message, "there is no memory");
    if (y > 0 && jpeg_skip_scanlines(cinfo, y) != y) return refuse(message, "it ends too early");
    for (int i = 0; i < width; i++) {
        double share;
        int left = neighbour(plan->flip ? width - 1 - i : i, width, (int)w, &share);
        int32_t right_share = (int32_t)(share * 16384 + 0.5);
        scratch->columns[i] = (Column){left * CHANNELS, (right_share << 16) | (16384 - right_share)};
    }
    size_t offset = (size_t)(x - from) * CHANNELS + MISALIGNED;
    int have = 0; /* rows of the box that were read */
    for (int i = 0; i < height; i++) {
        double share;
        int upper = neighbour(i, height, (int)h, &share);
        int lower = h > 1 ? upper + 1 : upper;
        for (; have <= lower; have++)
            if (!read_row(cinfo, scratch->rows[have & 1])) return refuse(message, "it ends too early");
        if (out == NULL) continue;
        mix_rows(scratch->rows[upper & 1] + offset, scratch->rows[lower & 1] + offset, (int16_t)(share * 32767 + 0.5),
                 scratch->mixed, (size_t)w * CHANNELS);
        mix_columns(scratch->mixed, scratch->columns, out + (size_t)i * width * CHANNELS, width);
    }
    return cinfo->err->num_warnings == 0;
}

/* 1 where the image was decoded, else 0 with the reason in `message`. */
static int decode_one(struct jpeg_decompress_struct *cinfo, const uint8_t *data, size_t bytes, const Plan *plan,
                      Scratch *scratch, uint8_t *out, int height, int width) {
    Errors *errors = (Errors *)cinfo->err;
    int done = 0;
    errors->base.num_warnings = 0;
    if (setjmp(errors->escape) == 0) {
        jpeg_mem_src(cinfo, data, bytes);
        done = decode_box(cinfo, plan, scratch, out, height, width, errors->message);
    } else {
        done = 0;
    }
    jpeg_abort_decompress(cinfo);
    return done;
}

int ziggurat_abi(void) { return ZIGGURAT_ABI; }
int ziggurat_message_bytes(void) { return MESSAGE_BYTES; }
int ziggurat_jpeg_version(void) { return LIBJPEG_TURBO_VERSION_NUMBER; }

/* Decode `count` images into slots of `out`, which has room for `slots` images of height x width x 3 bytes.
 *
 * messages: count x MESSAGE_BYTES; empty for an image that was decoded, else the reason why not.
 * out: NULL decodes without resizing and writing, to measure the decoder alone.
 * Returns the number of images decoded, or -1 where there is no memory. */
int ziggurat_jpeg_crops(int count, const uint8_t *const *data, const size_t *bytes, const Plan *plans, uint8_t *out,
                        int slots, int height, int width, char *messages) {
    struct jpeg_decompress_struct cinfo;
    Errors errors;
    Scratch scratch = {{NULL, NULL}, NULL, NULL, 0};
    volatile int done = 0;
    if (height < 1 || width < 1 || slots < 1) return -1;
    scratch.columns = malloc((size_t)width * sizeof *scratch.columns);
    cinfo.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    errors.base.emit_message = on_message;
    errors.base.output_message = be_silent;
    errors.message = messages;
    if (!scratch.columns || setjmp(errors.escape) != 0) {
        free_scratch(&scratch);
        return -1;
    }
    jpeg_create_decompress(&cinfo);
    for (int i = 0; i < count; i++) {
        errors.message = messages + (size_t)i * MESSAGE_BYTES;
        errors.message[0] = 0;
        if (plans[i].slot < 0 || plans[i].slot >= slots) {
            refuse(errors.message, "its slot does not lie in the batch");
            continue;
        }
        uint8_t *place = out ? out + (size_t)plans[i].slot * height * width * CHANNELS : NULL;
        done += decode_one(&cinfo, data[i], bytes[i], &plans[i], &scratch, place, height, width);
    }
    jpeg_destroy_decompress(&cinfo);
    free_scratch(&scratch);
    return done;
}
