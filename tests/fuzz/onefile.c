/* SPDX-License-Identifier: Apache-2.0 */
/* onefile.c - run a fuzz target over the files named on the command line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int argc, char **argv)
{
    static uint8_t buf[1 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(buf, fread(buf, 1, sizeof buf, f));
        (void)fclose(f);
    }
    return 0;
}
