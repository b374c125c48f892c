/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_pin.c - the CPUs of this process: which, with how much cache; and
 * memory to measure with. See probe.h.
 */
#include "config.h"

#include "probe/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_CPUS (1 << 20) /* a mask of 128 KiB; Linux builds stop at 8192 */
#define MAX_CACHES 64      /* instances counted; more pass any limit of ours */
#define CACHE_INDICES 10   /* /sys/.../cache/index0 .. 9 */

/* ==== Affinity ==== */

/*
 * The affinity mask; free with CPU_FREE. *bytes is its length. The kernel
 * refuses (EINVAL) a mask shorter than its own, so grow until it fits.
 */
static cpu_set_t *get_mask(size_t *bytes)
{
    for (int n = CPU_SETSIZE; n <= MAX_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);

        if (!set)
            return NULL;
        *bytes = CPU_ALLOC_SIZE(n);
        if (sched_getaffinity(0, *bytes, set) == 0)
            return set;
        CPU_FREE(set);
        if (errno != EINVAL)
            return NULL;
    }
    return NULL;
}

int ep_probe_nth_cpu(int k)
{
    size_t bytes;
    cpu_set_t *set = get_mask(&bytes);
    int found = -1;

    for (int cpu = 0; set && cpu < (int)(bytes * 8); cpu++)
        if (CPU_ISSET_S(cpu, bytes, set) && k-- == 0) {
            found = cpu;
            break;
        }
    if (set)
        CPU_FREE(set);
    return found;
}

int ep_probe_pin(int cpu, struct ep_error *err)
{
    cpu_set_t *set;
    size_t bytes;
    int rc, why;

    if (cpu < 0 || cpu >= MAX_CPUS)
        return ep_error_set(err, EP_ERANGE, "number %d is not in 0 .. %d", cpu,
                            MAX_CPUS - 1);
    set = CPU_ALLOC(cpu + 1);
    if (!set)
        return ep_error_sys(err, errno, "cannot set the affinity");
    bytes = CPU_ALLOC_SIZE(cpu + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    rc = sched_setaffinity(0, bytes, set);
    why = errno;
    CPU_FREE(set);
    if (rc == 0)
        return 0;
    if (why == EINVAL)
        return ep_error_set(err, EP_EUSAGE,
                            "this process may use none of that number");
    return ep_error_sys(err, why, "cannot set the affinity");
}

/* ==== Small files of the kernel ==== */

/* The number that a file begins with, and the letter behind it; 0 if none. */
static bool read_number(uint64_t *value, char *next, const char *fmt, ...)
    EP_PRINTF(3, 4);

static bool read_number(uint64_t *value, char *next, const char *fmt, ...)
{
    char path[128], text[64];
    char *end = text;
    va_list ap;
    FILE *f;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    f = fopen(path, "re");
    if (!f)
        return false;
    if (fgets(text, sizeof text, f)) {
        errno = 0;
        *value = strtoull(text, &end, 10);
        if (errno)
            end = text;
        *next = *end;
    }
    (void)fclose(f);
    return end != text;
}

/* The last-level cache of one CPU, and the first CPU that shares it. */
static bool last_cache(int cpu, uint64_t *bytes, uint64_t *owner)
{
    static const char dir[] = "/sys/devices/system/cpu/cpu";
    uint64_t level, top = 0;

    for (int i = 0; i < CACHE_INDICES; i++) {
        uint64_t size, first;
        char unit, c;

        if (!read_number(&level, &c, "%s%d/cache/index%d/level", dir, cpu, i))
            break;
        if (level <= top ||
            !read_number(&size, &unit, "%s%d/cache/index%d/size", dir, cpu,
                         i) ||
            !read_number(&first, &c, "%s%d/cache/index%d/shared_cpu_list", dir,
                         cpu, i))
            continue;
        top = level;
        *owner = first;
        *bytes = size * (unit == 'M' ? 1U << 20 : unit == 'K' ? 1U << 10 : 1U);
    }
    return top > 0;
}

uint64_t ep_probe_llc_bytes(void)
{
    uint64_t seen[MAX_CACHES], sum = 0, size, owner;
    size_t bytes, nseen = 0;
    cpu_set_t *set = get_mask(&bytes);

    for (int cpu = 0; set && cpu < (int)(bytes * 8); cpu++) {
        size_t k = 0;

        if (!CPU_ISSET_S(cpu, bytes, set) || !last_cache(cpu, &size, &owner))
            continue;
        while (k < nseen && seen[k] != owner)
            k++;
        if (k < nseen)
            continue;
        if (nseen == MAX_CACHES)
            break;
        seen[nseen++] = owner;
        sum += size;
    }
    if (set)
        CPU_FREE(set);
    if (sum == 0) {
        long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);

        sum = l3 > 0 ? (uint64_t)l3 : 0;
    }
    return sum;
}

/* ==== Memory ==== */

void *ep_probe_map(uint64_t bytes, struct ep_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    void *p;

    if (pages > 0 && page > 0 && bytes > (uint64_t)pages * (uint64_t)page / 2) {
        (void)ep_error_set(err, EP_ELIMIT,
                           "cannot allocate %.1f GiB: more than half of the "
                           "memory",
                           (double)bytes / (1 << 30));
        return NULL;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
             -1, 0);
    if (p == MAP_FAILED) {
        (void)ep_error_sys(err, errno, "cannot allocate %llu bytes",
                           (unsigned long long)bytes);
        return NULL;
    }
    /*
     * Measured on a 2-core VM, 1 GiB: the first touch takes 0.21 s with huge
     * pages and 1.14 s without. Where there are none the advice fails, and
     * nothing is lost but that.
     */
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void ep_probe_unmap(void *p, uint64_t bytes)
{
    if (p)
        (void)munmap(p, bytes);
}
