#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lsgd-torch.bats - the outer optimiser with N = 1 against PyTorch's SGD with
# Nesterov momentum, on the same gradients.

load lib

setup() {
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import torch' 2>/dev/null && return 0
    done
    skip "PyTorch is not installed"
}

@test "N = 1 is torch.optim.SGD(nesterov=True), in double and in float" {
    cd "$BATS_TEST_TMPDIR"
    "$top_builddir/tests/unit/test_outer" --dump vectors
    cat >compare.py <<'EOF'
import sys
import torch

STEPS = 20


def follow(lr, beta, start, gradients, dtype):
    """The parameters after each step, as double."""
    p = torch.nn.Parameter(torch.tensor(start, dtype=dtype))
    sgd = torch.optim.SGD([p], lr=lr, momentum=beta, nesterov=beta > 0)
    for g in gradients:
        p.grad = torch.tensor(g, dtype=dtype)
        sgd.step()
        yield p.detach().double().clone()


# A step rounds six times, and PyTorch may fuse a product and a sum: 8 halves
# of an epsilon of the largest magnitude per step.
def tolerance(dtype, most):
    return STEPS * 8 * torch.finfo(dtype).eps / 2 * most


rows = [[float(x) for x in line.split()] for line in open(sys.argv[1])]
cases = 0
while rows:
    (lr, beta, n), start, rows = rows[0], rows[1], rows[2:]
    steps, rows = rows[:3 * STEPS], rows[3 * STEPS:]
    gradients, ours = steps[0::3], {torch.float64: steps[1::3],
                                    torch.float32: steps[2::3]}
    assert len(start) == n and len(gradients) == STEPS
    for dtype, values in ours.items():
        got = [torch.tensor(v, dtype=torch.float64) for v in values]
        want = list(follow(lr, beta, start, gradients, dtype))
        most = max(float(w.abs().max()) for w in want) + 1 / (1 - beta)
        worst = max(float((g - w).abs().max()) for g, w in zip(got, want))
        print(lr, beta, dtype, worst, tolerance(dtype, most))
        assert worst <= tolerance(dtype, most)
        cases += 1
assert cases == 6
EOF
    run -0 "$python" compare.py vectors
    echo "$output"
}
