/* SPDX-License-Identifier: Apache-2.0 */
/* FFmpeg's FFTs of 16 to 4096 points, one after the other. */
#include <libavutil/mem.h>
#include <libavutil/tx.h>

enum { LEAST = 4, MOST = 12 };

int main(void)
{
	float *in = av_mallocz(8 << MOST), *out = av_mallocz(8 << MOST), scale = 1;
	AVTXContext *context[MOST + 1];
	av_tx_fn run[MOST + 1];

	for (int k = LEAST; k <= MOST; k++)
		if (av_tx_init(&context[k], &run[k], AV_TX_FLOAT_FFT, 0, 1 << k, &scale, 0) < 0)
			return 1;
	for (;;)
		for (int k = LEAST; k <= MOST; k++)
			run[k](context[k], out, in, 8);
}
