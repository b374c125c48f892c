/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"
int main(void) { return tap_done(); }
