/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare_text.c - what can happen to a pair of tensors, and what is said
 * of it; worked by hand.
 */
#include "config.h"

#include "compare_pair.h"

#include <stdint.h>

/* ==== Values that are not finite, and bits ==== */

static const uint64_t two_three[] = {2, 3}, nine[] = {9};
static const float mix_a[] = {3, NAN, INFINITY, -INFINITY, 4, 0};
static const float mix_b[] = {3, 1, INFINITY, INFINITY, NAN, -0.0F};
static const float one_b[] = {3, NAN, INFINITY, -INFINITY, 6, 0};
static const float zero[9], minus[] = {0, 0, 0, -0.0F, 0, 0, 0, 0, 0};
static const float tiny[] = {0, 0, 0, 1e-45F, 0, 0, 0, 0, 0};
static struct ep_tensor special[] = {
    {.name = SPAN("mix"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = two_three,
     .data = mix_a},
    {.name = SPAN("one"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = two_three,
     .data = mix_a},
    {.name = SPAN("self"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = two_three,
     .data = mix_a},
    {.name = SPAN("tiny"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = nine,
     .data = zero},
    {.name = SPAN("zero"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = nine,
     .data = zero},
};

static void test_special(void)
{
    const struct ep_compared *t;
    struct ep_compare r;

    make_ckpt("a", special, 5, NULL, 0, 0);
    special[0].data = mix_b;
    special[1].data = one_b;
    special[3].data = tiny;
    special[4].data = minus;
    make_ckpt("b", special, 5, NULL, 0, 0);
    r = compare(1);
    t = find(&r, "mix");
    ok(t->kind == EP_COMPARE_DIFFER && t->differing == 3 && t->broken == 3);
    ok(t->broken_at == 1 && t->max_abs == 0 && t->diff_norm == 0);
    ok(t->nan_a == 1 && t->inf_a == 2 && t->nan_b == 1 && t->inf_b == 2);
    near(t->a_norm, 5, 0);
    t = find(&r, "one");
    ok(t->kind == EP_COMPARE_DIFFER && t->differing == 1 && t->broken == 0);
    ok(t->max_at == 4 && t->nan_a == 1 && t->nan_b == 1 && t->inf_b == 2);
    near(t->max_abs, 2, 0);
    near(t->relative, 0.4, 1e-16);
    t = find(&r, "self");
    ok(t->kind == EP_COMPARE_EQUAL && t->nan_a == 1 && t->nan_b == 1 &&
       t->inf_a == 2 && t->inf_b == 2 && t->differing == 0);
    near(t->a_norm, 5, 0);
    t = find(&r, "tiny"); /* from nothing to something */
    ok(t->kind == EP_COMPARE_DIFFER && t->differing == 1 && t->max_at == 3);
    ok(isinf(t->relative) && t->diff_norm > 0);
    t = find(&r, "zero");
    ok(t->kind == EP_COMPARE_VALUES && t->differing == 0 && t->relative == 0);
    ok(r.broken == 3 && r.differing == 5);
    ok(ep_compare_verdict(&r) == EP_VERDICT_DIFFER);
    done(&r);
}

static void test_special_text(void)
{
    struct ep_compare r = compare(1);

    ok(says(&r,
            "differ in 3 of 5 tensors, relative norm 0.231, 3 elements NaN "
            "or infinite"));
    ok(prints(
        &r, EP_CKPT_TEXT, false,
        "differ in 3 of 5 tensors, relative norm 0.231, 3 elements NaN or "
        "infinite\n"
        "\n"
        "tensor  relative    |a-b|  max |a-b|  at     differing  remarks\n"
        "mix            0        0          0  -         3 of 6  1 NaN in A, "
        "1 NaN in B, 2 infinite in A, 2 infinite in B, first at [0,1]\n"
        "tiny         inf  1.4e-45    1.4e-45  [3]       1 of 9\n"
        "one          0.4        2          2  [1,1]     1 of 6  1 NaN in A, "
        "1 NaN in B, 2 infinite in A, 2 infinite in B\n"
        "zero           0        0          0  -         0 of 9  other "
        "bits\n"));
    done(&r);
}

/* ==== Kinds ==== */

static const uint64_t four[] = {4}, flat[] = {2, 2}, six[] = {6};
static const uint64_t none[] = {0, 5};
static const float f[] = {1, 2, 3, 4};
static const double d[] = {1, 2, 3, 4};
static const int32_t ints[] = {1, -1, 5, 7}, other[] = {1, -1, 6, 8};
static const char bytes[] = "abcdef", bites[] = "abxdeg";
static struct ep_tensor kinds_a[] = {
    {.name = SPAN("bits"),
     .dtype = EP_DT_F4,
     .rank = 1,
     .shape = six,
     .data = bytes},
    {.name = SPAN("bool"),
     .dtype = EP_DT_BOOL,
     .rank = 1,
     .shape = four,
     .data = bytes},
    {.name = SPAN("empty"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = none,
     .data = ""},
    {.name = SPAN("int"),
     .dtype = EP_DT_I32,
     .rank = 1,
     .shape = four,
     .data = ints},
    {.name = SPAN("left\n"), .dtype = EP_DT_F32, .data = f},
    {.name = SPAN("shape"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = four,
     .data = f},
    {.name = SPAN("type"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = four,
     .data = f},
    {.name = SPAN("wide"),
     .dtype = EP_DT_F32,
     .rank = 1,
     .shape = four,
     .data = f},
};
static struct ep_tensor kinds_b[] = {
    {.name = SPAN("bits"),
     .dtype = EP_DT_F4,
     .rank = 1,
     .shape = six,
     .data = bites},
    {.name = SPAN("bool"),
     .dtype = EP_DT_BOOL,
     .rank = 1,
     .shape = four,
     .data = bytes},
    {.name = SPAN("empty"),
     .dtype = EP_DT_BF16,
     .rank = 2,
     .shape = none,
     .data = ""},
    {.name = SPAN("int"),
     .dtype = EP_DT_I32,
     .rank = 1,
     .shape = four,
     .data = other},
    {.name = SPAN("right"), .dtype = EP_DT_I8, .data = f},
    {.name = SPAN("right2"), .dtype = EP_DT_I8, .data = f},
    {.name = SPAN("shape"),
     .dtype = EP_DT_F32,
     .rank = 2,
     .shape = flat,
     .data = f},
    {.name = SPAN("type"),
     .dtype = EP_DT_I32,
     .rank = 1,
     .shape = four,
     .data = ints},
    {.name = SPAN("wide"),
     .dtype = EP_DT_F64,
     .rank = 1,
     .shape = four,
     .data = d},
};

static void test_kinds(void)
{
    static const enum ep_compare_kind want[] = {
        EP_COMPARE_DIFFER, EP_COMPARE_EQUAL,  EP_COMPARE_VALUES,
        EP_COMPARE_DIFFER, EP_COMPARE_ONLY_A, EP_COMPARE_ONLY_B,
        EP_COMPARE_ONLY_B, EP_COMPARE_SHAPE,  EP_COMPARE_DTYPE,
        EP_COMPARE_VALUES,
    };
    const struct ep_compared *t;
    struct ep_compare r;

    make_ckpt("a", kinds_a, 8, NULL, 0, 0);
    make_ckpt("b", kinds_b, 9, NULL, 0, 0);
    r = compare(2);
    ok(r.n == 10);
    for (size_t i = 0; i < r.n; i++)
        ok(r.tensor[i].kind == want[i]);
    t = find(&r, "int");
    ok(!t->numeric && t->differing == 2 && t->max_at == 2);
    t = find(&r, "bits"); /* "abcdef" is 12 elements, of which 6 are there */
    ok(!t->numeric && t->differing == 1 && t->max_at == 2);
    ok(ep_compare_verdict(&r) == EP_VERDICT_INCOMPARABLE);
    ok(prints(
        &r, EP_CKPT_TEXT, false,
        "not comparable: 1 only in A, 2 only in B, 1 of another shape, 1 of "
        "another type; of the other 5, 2 differ, relative norm 0\n"
        "\n"
        "not comparable  A           B\n"
        "left\\x0a        F32 scalar  -\n"
        "right           -           I8 scalar\n"
        "right2          -           I8 scalar\n"
        "shape           F32 4       F32 2x2\n"
        "type            F32 4       I32 4\n"
        "\n"
        "tensor  relative  |a-b|  max |a-b|  at   differing  remarks\n"
        "bits           -      -          -  -       1 of 3  F4, by bytes\n"
        "int            -      -          -  [2]     2 of 4  I32, by bytes\n"
        "empty          0      0          0  -       0 of 0  F32 / BF16\n"
        "wide           0      0          0  -       0 of 4  F32 / F64\n"));
    done(&r);
}

static void test_machine_formats(void)
{
    struct ep_compare r = compare(1);

    ok(prints(
        &r, EP_CKPT_JSONL, false,
        "{\"type\":\"compare\",\"verdict\":\"incomparable\",\"a\":\"a\","
        "\"b\":\"b\",\"tensors\":10,\"equal\":1,\"values\":2,\"differ\":2,"
        "\"dtype\":1,\"shape\":1,\"only_a\":1,\"only_b\":2,\"diff_norm\":0,"
        "\"a_norm\":5.477225575051661,\"relative\":0,\"differing\":3,"
        "\"broken\":0}\n"
        "{\"type\":\"compared\",\"name\":\"bits\",\"kind\":\"differ\","
        "\"dtype_a\":\"F4\",\"shape_a\":[6],\"dtype_b\":\"F4\",\"shape_b\":[6],"
        "\"max_at\":2,\"differing\":1,\"broken\":0}\n"
        "{\"type\":\"compared\",\"name\":\"empty\",\"kind\":\"values\","
        "\"dtype_a\":\"F32\",\"shape_a\":[0,5],\"dtype_b\":\"BF16\","
        "\"shape_b\":[0,5],\"relative\":0,\"diff_norm\":0,\"a_norm\":0,"
        "\"max_abs\":0,\"differing\":0,\"broken\":0,\"nan_a\":0,\"inf_a\":0,"
        "\"nan_b\":0,\"inf_b\":0}\n"
        "{\"type\":\"compared\",\"name\":\"int\",\"kind\":\"differ\","
        "\"dtype_a\":\"I32\",\"shape_a\":[4],\"dtype_b\":\"I32\",\"shape_b\":["
        "4],\"max_at\":2,\"differing\":2,\"broken\":0}\n"
        "{\"type\":\"compared\",\"name\":\"left\\n\",\"kind\":\"only_a\","
        "\"dtype_a\":\"F32\",\"shape_a\":[]}\n"
        "{\"type\":\"compared\",\"name\":\"right\",\"kind\":\"only_b\","
        "\"dtype_b\":\"I8\",\"shape_b\":[]}\n"
        "{\"type\":\"compared\",\"name\":\"right2\",\"kind\":\"only_b\","
        "\"dtype_b\":\"I8\",\"shape_b\":[]}\n"
        "{\"type\":\"compared\",\"name\":\"shape\",\"kind\":\"shape\","
        "\"dtype_a\":\"F32\",\"shape_a\":[4],\"dtype_b\":\"F32\",\"shape_b\":["
        "2,2]}\n"
        "{\"type\":\"compared\",\"name\":\"type\",\"kind\":\"dtype\","
        "\"dtype_a\":\"F32\",\"shape_a\":[4],\"dtype_b\":\"I32\",\"shape_b\":["
        "4]}\n"
        "{\"type\":\"compared\",\"name\":\"wide\",\"kind\":\"values\","
        "\"dtype_a\":\"F32\",\"shape_a\":[4],\"dtype_b\":\"F64\",\"shape_b\":["
        "4],\"relative\":0,\"diff_norm\":0,\"a_norm\":5.477225575051661,"
        "\"max_abs\":0,\"differing\":0,\"broken\":0,\"nan_a\":0,\"inf_a\":0,"
        "\"nan_b\":0,\"inf_b\":0}\n"));
    ok(prints(
        &r, EP_CKPT_TSV, true,
        "name\tkind\tdtype_a\tshape_a\tdtype_b\tshape_b\trelative\tdiff_norm\t"
        "a_norm\tmax_abs\tmax_at\tdiffering\tbroken\tbroken_at\tnan_a\tinf_a\t"
        "nan_b\tinf_b\n"
        "bits\tdiffer\tF4\t6\tF4\t6\t\t\t\t\t2\t1\t0\t\t\t\t\t\n"
        "bool\tequal\tBOOL\t4\tBOOL\t4\t\t\t\t\t\t0\t0\t\t\t\t\t\n"
        "empty\tvalues\tF32\t0x5\tBF16\t0x5\t0\t0\t0\t0\t\t0\t0\t\t0\t0\t0\t0\n"
        "int\tdiffer\tI32\t4\tI32\t4\t\t\t\t\t2\t2\t0\t\t\t\t\t\n"
        "left\\n\tonly_a\tF32\tscalar\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n"
        "right\tonly_b\t\t\tI8\tscalar\t\t\t\t\t\t\t\t\t\t\t\t\n"
        "right2\tonly_b\t\t\tI8\tscalar\t\t\t\t\t\t\t\t\t\t\t\t\n"
        "shape\tshape\tF32\t4\tF32\t2x2\t\t\t\t\t\t\t\t\t\t\t\t\n"
        "type\tdtype\tF32\t4\tI32\t4\t\t\t\t\t\t\t\t\t\t\t\t\n"
        "wide\tvalues\tF32\t4\tF64\t4\t0\t0\t5.477225575051661\t0\t\t0\t0\t\t0"
        "\t0\t0\t0\n"));
    done(&r);
}

/* ==== Verdicts, and what is left out ==== */

static void test_verdicts(void)
{
    static char name[25][8];
    static const float one = 1, two[25] = {0, 3, 2};
    struct ep_tensor t[25];
    struct ep_compare_options opt = {.threads = -1};
    struct ep_error err = {0};
    struct ep_compare r, no;
    struct ep_buf out;
    size_t lines = 0;

    for (size_t i = 0; i < 25; i++) {
        (void)snprintf(name[i], sizeof name[i], "n%02zu", i);
        t[i] = (struct ep_tensor){
            .name = {name[i], 3}, .dtype = EP_DT_F32, .data = &one};
    }
    make_ckpt("a", t, 25, NULL, 0, 0);
    remove_all("b");
    make_ckpt("b", t, 25, NULL, 0, 20); /* shards are no difference */
    r = compare(3);
    ok(says(&r, "equal: 25 tensors"));
    ok(ep_compare_verdict(&r) == EP_VERDICT_EQUAL);
    ok(prints(&r, EP_CKPT_TEXT, false, "equal: 25 tensors\n"));
    done(&r);
    remove_all("b");

    for (size_t i = 0; i < 25; i++)
        t[i].data = &two[i];
    make_ckpt("b", t, 25, NULL, 0, 0);
    r = compare(1);
    ep_buf_init(&out);
    ep_compare_print(&r, &(struct ep_compare_options){0}, &out);
    for (size_t i = 0; i < out.len; i++)
        lines += out.ptr[i] == '\n';
    ok(lines == 24); /* verdict, blank, head, 20 rows, how many more */
    ok(strstr(out.ptr, "\nand 5 more\n") != NULL);
    /* worst first: n01 is 1 and 3, all others 1 and 0, or 1 and 2 */
    ok(strstr(out.ptr,
              "remarks\nn01            2      2          2  -      "
              "1 of 1\nn00            1 ") != NULL);
    ep_buf_reset(&out);
    ep_compare_print(&r, &(struct ep_compare_options){.all = true}, &out);
    lines = 0;
    for (size_t i = 0; i < out.len; i++)
        lines += out.ptr[i] == '\n';
    ok(lines == 28);
    ep_buf_free(&out);
    done(&r);

    make_ckpt("a", t, 0, NULL, 0, 0);
    make_ckpt("b", t, 0, NULL, 0, 0);
    r = compare(1);
    ok(says(&r, "equal: 0 tensors"));
    ok(prints(&r, EP_CKPT_TEXT, true, "equal: 0 tensors\n"));
    done(&r);
    make_ckpt("b", t, 1, NULL, 0, 0);
    r = compare(1);
    ok(says(&r, "not comparable: 1 only in B"));
    ok(ep_compare_run(&no, r.a, r.b, &opt, &err) == EP_ELIMIT);
    ok(strcmp(err.msg, "-1 threads: not in 1..1024") == 0);
    done(&r);
}

int main(void)
{
    enter_folder();
    test_special();
    test_special_text();
    test_kinds();
    test_machine_formats();
    test_verdicts();
    leave_folder();
    return tap_done();
}
