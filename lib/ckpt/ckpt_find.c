/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_find.c - from the path that somebody gave to the file that is meant. */
#include "config.h"

#include "ckpt/ckpt_impl.h"

#include "base/map.h"
#include "base/mem.h"
#include "ckpt/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ==== Messages ==== */

int ep_ckpt_cannot_read(struct ep_error *err, int code, const char *path)
{
    char dots[200] = "...", *text = dots + 3;
    const char *shown = text;
    size_t n = strlen(path), take = n, room;

    if (!err)
        return code;
    room = sizeof err->msg - strlen("cannot read : ") - 1;
    room -= strlen(err->msg) < room - 40 ? strlen(err->msg) : room - 40;
    if (room > sizeof dots - 12) /* what ep_escape cuts is longer */
        room = sizeof dots - 12;
    (void)ep_escape(text, sizeof dots - 3, path, n);
    while (strlen(shown) > room && take > 0) {
        take -= (strlen(shown) - room + 6) / 4;
        /* not from the middle of a character on */
        for (int i = 0; i < 3 && take && (path[n - take] & 0xc0) == 0x80; i++)
            take--;
        (void)ep_escape(text, sizeof dots - 3, path + n - take, take);
        shown = dots;
    }
    (void)ep_error_prefix(err, "cannot read %s", shown);
    return code;
}

/* ==== Paths ==== */

static char *join(const char *folder, size_t n, const char *name)
{
    size_t m = strlen(name);
    char *path;

    while (n > 1 && folder[n - 1] == '/')
        n--;
    path = ep_realloc(NULL, n + m + 2, 1);
    memcpy(path, folder, n);
    if (n && path[n - 1] != '/')
        path[n++] = '/';
    memcpy(path + n, name, m + 1);
    return path;
}

char *ep_ckpt_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return join(path, slash ? (size_t)(slash - path) + 1 : 0, name);
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && memcmp(s + n - m, end, m) == 0;
}

static bool is_there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* ==== Folders ==== */

/* What a folder without the usual names holds. */
struct holds {
    char *one;   /* name of a *.safetensors, the first by bytes */
    size_t many; /* how many there are */
    char *alien; /* name of a file that may be a pickle, the first */
    bool dcp;    /* has a .metadata */
};

static void keep_first(char **kept, const char *name)
{
    if (*kept && strcmp(*kept, name) <= 0)
        return;
    free(*kept);
    *kept = ep_strdup(name);
}

static int look(const char *folder, struct holds *h, struct ep_error *err)
{
    static const char *const pickles[] = {".bin", ".pt", ".pth", ".ckpt"};
    char shown[200];
    DIR *dir = opendir(folder);
    struct dirent *d;

    if (!dir)
        return ep_error_sys(
            err, errno, "cannot open %s",
            ep_escape(shown, sizeof shown, folder, strlen(folder)));
    while ((d = readdir(dir)) != NULL) {
        if (ends_in(d->d_name, ".safetensors")) {
            keep_first(&h->one, d->d_name);
            h->many++;
        }
        for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
            if (ends_in(d->d_name, pickles[i]))
                keep_first(&h->alien, d->d_name);
        h->dcp |= strcmp(d->d_name, ".metadata") == 0;
    }
    (void)closedir(dir);
    return 0;
}

/* If the file in the folder is what foreign.h knows, refuse it by name. */
static int refuse_alien(const char *folder, const char *name,
                        struct ep_error *err)
{
    char *path = join(folder, strlen(folder), name);
    struct ep_map map;
    int rc = ep_map_open(&map, path, NULL);

    if (rc == 0) {
        const char *why = ep_ckpt_foreign(map.data, map.len);

        if (why) {
            (void)ep_error_set(err, EP_EFORMAT, "%s", why);
            rc = ep_ckpt_cannot_read(err, EP_EFORMAT, path);
        }
        ep_map_close(&map);
    } else {
        rc = 0;
    }
    free(path);
    return rc;
}

/*
 * Is name NAME-00001-of-0000N.safetensors with N > 1? Then the length of NAME,
 * else 0.
 */
static size_t shard_stem(const char *name)
{
    static const char digits[] = "0123456789";
    const char *dash = NULL;
    size_t i, n;

    for (const char *s = name; (s = strstr(s, "-of-")) != NULL; s++)
        dash = s;
    if (!dash)
        return 0;
    n = strspn(dash + 4, digits);
    if (!n || strcmp(dash + 4 + n, ".safetensors") != 0 ||
        strtoull(dash + 4, NULL, 10) < 2)
        return 0;
    for (i = (size_t)(dash - name); i && strchr(digits, name[i - 1]); i--)
        ;
    return i && name + i < dash && name[i - 1] == '-' ? i - 1 : 0;
}

/* The only safetensors file of a folder, if it can be all of a model. */
static int take_one(const char *folder, const char *name, char **found,
                    struct ep_error *err)
{
    size_t stem = shard_stem(name);
    char shown[60], shard[60];

    if (!stem) {
        *found = join(folder, strlen(folder), name);
        return 0;
    }
    (void)ep_error_set(err, EP_EMISSING,
                       "%s is one shard of several, and their index, "
                       "%s.safetensors.index.json, is missing",
                       ep_escape(shard, sizeof shard, name, strlen(name)),
                       ep_escape(shown, sizeof shown, name, stem));
    return ep_ckpt_cannot_read(err, EP_EMISSING, folder);
}

static int search(const char *folder, char **found, struct ep_error *err)
{
    struct holds h = {NULL, 0, NULL, false};
    int rc = look(folder, &h, err);

    if (rc == 0 && h.many == 1) {
        rc = take_one(folder, h.one, found, err);
    } else if (rc == 0) {
        if (h.many == 0 && !h.dcp && h.alien)
            rc = refuse_alien(folder, h.alien, err);
        if (rc == 0) {
            if (h.many)
                (void)ep_error_set(err, EP_EFORMAT,
                                   "%zu safetensors files in this folder, and "
                                   "no index",
                                   h.many);
            else
                (void)ep_error_set(err, EP_EFORMAT, "%s",
                                   h.dcp ? ep_ckpt_foreign_folder()
                                         : "no safetensors file in this "
                                           "folder");
            rc = ep_ckpt_cannot_read(err, EP_EFORMAT, folder);
        }
    }
    free(h.one);
    free(h.alien);
    return rc;
}

int ep_ckpt_locate(const char *path, char **found, bool *index,
                   struct ep_error *err)
{
    static const char *const usual[] = {"model.safetensors.index.json",
                                        "model.safetensors"};
    struct stat st;
    char shown[200];

    *found = NULL;
    if (!*path)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot open \"\": the name is empty");
    if (stat(path, &st) != 0)
        return ep_error_sys(err, errno, "cannot open %s",
                            ep_escape(shown, sizeof shown, path, strlen(path)));
    if (!S_ISDIR(st.st_mode)) {
        *found = ep_strdup(path);
        *index = ends_in(path, ".json");
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        *found = join(path, strlen(path), usual[i]);
        *index = i == 0;
        if (is_there(*found))
            return 0;
        free(*found);
        *found = NULL;
    }
    return search(path, found, err);
}
