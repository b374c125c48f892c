/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bocd.c - the recursion of bocd.h, one log and one exp per run length.
 *
 * With q = 2 beta (kappa + 1) / kappa the predictive is
 *
 *     pi(x) = G(alpha) q^alpha (q + z^2)^-(alpha + 1/2),   z = x - mu
 *     G(alpha) = Gamma(alpha + 1/2) / (Gamma(alpha) sqrt(pi))
 *
 * and the posterior's q is (q + z^2) kappa (kappa + 2) / (kappa + 1)^2. So
 * the log of this step's (q + z^2) serves the next step again, up to a
 * constant of the run length that is folded into the table of log G. The
 * probabilities are kept normalised; the predictives are divided by the
 * largest before they leave log space, so nothing overflows and what
 * underflows does not matter.
 */
#include "config.h"

#include "detect/bocd.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define X_MAX 1e100
#define LOG_TINY (-600.0) /* exp of less counts as zero: no denormals */
#define TINY 1e-250

/* Saved by ep_bocd_archive. */
struct ep_bocd {
    double hazard;
    double kappa0, alpha0;
    unsigned window;
    unsigned len; /* run lengths in use */
    /* Six slices of data[], [window] each. */
    double *prob;   /* P(r) */
    double *mean;   /* mu */
    double *q;      /* 2 beta (kappa + 1) / kappa */
    double *log_s;  /* log(q + z^2) of the sample that led here */
    double *coef;   /* log G(alpha) + alpha log(q / exp(log_s)) */
    double *weight; /* of the sample under way */
    double data[];
};

/* log of the factor between q and the q + z^2 it came from. */
static double log_ratio(const struct ep_bocd *b, unsigned r)
{
    double k = b->kappa0 + r - 1;

    return r == 0 ? 0 : log(k) + log(k + 2) - 2 * log(k + 1);
}

static int check(const struct ep_bocd_config *c, struct ep_error *err)
{
    if (!(c->hazard > 0 && c->hazard < 1))
        return ep_error_set(err, EP_EDOM, "hazard is not in (0, 1)");
    if (!(fabs(c->mu0) <= X_MAX))
        return ep_error_set(err, EP_EDOM, "prior mean is not finite");
    if (!(c->kappa0 > 0 && c->kappa0 < 1e12 && c->alpha0 > 0 &&
          c->alpha0 < 1e12 && c->beta0 > 1e-200 && c->beta0 < X_MAX))
        return ep_error_set(err, EP_EDOM, "prior weights are not positive");
    if (c->window < 2 || c->window > EP_BOCD_MAX_WINDOW)
        return ep_error_set(err, EP_EDOM, "window is not in 2..%d",
                            EP_BOCD_MAX_WINDOW);
    return 0;
}

struct ep_bocd *ep_bocd_new(const struct ep_bocd_config *config,
                            struct ep_error *err)
{
    size_t w = config->window;
    struct ep_bocd *b;

    if (check(config, err))
        return NULL;
    b = ep_calloc(1, sizeof *b + 6 * w * sizeof(double));
    b->hazard = config->hazard;
    b->kappa0 = config->kappa0;
    b->alpha0 = config->alpha0;
    b->window = config->window;
    b->prob = b->data;
    b->mean = b->prob + w;
    b->q = b->mean + w;
    b->log_s = b->q + w;
    b->coef = b->log_s + w;
    b->weight = b->coef + w;
    for (unsigned r = 0; r < b->window; r++) {
        double alpha = b->alpha0 + r / 2.0;

        b->coef[r] = lgamma(alpha + 0.5) - lgamma(alpha) - log(M_PI) / 2 +
                     alpha * log_ratio(b, r);
    }
    b->len = 1;
    b->prob[0] = 1;
    b->mean[0] = config->mu0;
    b->q[0] = 2 * config->beta0 * (b->kappa0 + 1) / b->kappa0;
    b->log_s[0] = log(b->q[0]);
    return b;
}

void ep_bocd_free(struct ep_bocd *b)
{
    free(b);
}

void ep_bocd_set_mean(struct ep_bocd *b, double mu0)
{
    if (fabs(mu0) <= X_MAX)
        b->mean[0] = mu0;
}

/*
 * The weight of every run length after x, P(r) pi_r(x) up to a common factor,
 * into weight; their sum is returned. q becomes q + z^2, log_s its log.
 */
static double weigh(struct ep_bocd *b, double x)
{
    const unsigned len = b->len;
    const double alpha0 = b->alpha0;
    const double *prob = b->prob;
    double *restrict q = b->q;
    double *restrict log_s = b->log_s;
    double *restrict weight = b->weight;
    double top = -INFINITY;
    double sum = 0;

    for (unsigned r = 0; r < len; r++) {
        double z = x - b->mean[r];

        q[r] += z * z;
    }
    for (unsigned r = 0; r < len; r++) {
        double alpha = alpha0 + r / 2.0;
        double l = log(q[r]);

        weight[r] = b->coef[r] + alpha * log_s[r] - (alpha + 0.5) * l;
        log_s[r] = l;
        if (prob[r] > 0 && weight[r] > top)
            top = weight[r];
    }
    for (unsigned r = 0; r < len; r++) {
        double e = weight[r] - top;

        weight[r] = prob[r] > 0 && e > LOG_TINY ? prob[r] * exp(e) : 0;
        sum += weight[r];
    }
    return sum;
}

int ep_bocd_push(struct ep_bocd *b, double x)
{
    double *weight = b->weight;
    double prior_mean = b->mean[0];
    double prior_q = b->q[0];
    double prior_log_q = b->log_s[0];
    double scale;

    if (!(fabs(x) <= X_MAX))
        return EP_EDOM;
    scale = (1 - b->hazard) / weigh(b, x);
    if (b->len == b->window)
        /* The last bin joins its neighbour: "that long or longer". */
        weight[b->len - 2] += weight[b->len - 1];
    else
        b->len++;
    for (unsigned r = b->len - 1; r > 0; r--) {
        double k = b->kappa0 + r; /* kappa of the new run length */
        double p = weight[r - 1] * scale;

        b->prob[r] = p > TINY ? p : 0;
        b->mean[r] = b->mean[r - 1] + (x - b->mean[r - 1]) / k;
        b->q[r] = b->q[r - 1] * ((k - 1) * (k + 1) / (k * k));
        b->log_s[r] = b->log_s[r - 1];
    }
    b->prob[0] = b->hazard;
    b->mean[0] = prior_mean;
    b->q[0] = prior_q;
    b->log_s[0] = prior_log_q;
    return 0;
}

double ep_bocd_mass(const struct ep_bocd *b, unsigned w)
{
    double sum = 0;

    if (w >= b->len - 1)
        return 1;
    for (unsigned r = 0; r <= w; r++)
        sum += b->prob[r];
    return fmin(sum, 1);
}

unsigned ep_bocd_map(const struct ep_bocd *b)
{
    unsigned best = 0;

    for (unsigned r = 1; r < b->len; r++)
        if (b->prob[r] > b->prob[best])
            best = r;
    return best;
}

size_t ep_bocd_posterior(const struct ep_bocd *b, const double **prob)
{
    *prob = b->prob;
    return b->len;
}

/* The other fields come from the configuration; weight is room. */
void ep_bocd_archive(struct ep_archive *a, struct ep_bocd *b)
{
    double sum = 0;

    b->len = (unsigned)ep_archive_u64(a, b->len, b->window);
    for (unsigned r = 0; r < b->len; r++) {
        b->prob[r] = ep_archive_finite(a, b->prob[r]);
        b->mean[r] = ep_archive_finite(a, b->mean[r]);
        b->q[r] = ep_archive_finite(a, b->q[r]);
        b->log_s[r] = ep_archive_finite(a, b->log_s[r]);
        ep_archive_require(a, b->prob[r] >= 0 && b->q[r] > 0,
                           "a probability or variance is negative");
        sum += b->prob[r];
    }
    ep_archive_require(a, fabs(sum - 1) < 1e-6,
                       "probabilities do not add up to 1");
}
