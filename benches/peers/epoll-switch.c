/* A learning switch for OpenFlow 1.0 and 1.3 in one epoll loop: the practical limit against which Beehive is measured.
 *
 * It keeps a table per switch, (VLAN, MAC) -> (port, last heard), and answers a packet-in as Beehive's learning switch does:
 *   destination known    FLOW_MOD (in_port, VLAN, source, destination; idle and hard timeout) and the packet to that port:
 *                        PACKET_OUT with the whole frame when there is no buffer, else the FLOW_MOD releases the buffer;
 *   destination unknown  PACKET_OUT to FLOOD, with the frame or the buffer id;
 *   nothing to do        no answer (reserved group, destination on the port the packet came from, truncated frame without buffer).
 * It withdraws the flows to a host that has moved, and those to a port that has gone down.
 *
 * Per iteration of the loop it reads at most READ_BYTES from a connection and writes all answers at once. If the socket does not
 * accept all of them, it keeps the rest and does not read from that connection until the rest is sent. Memory is therefore bounded
 * by the output of one iteration. Lengths from the network are checked against the message that contains them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 * 1024,       /* maximum read from one connection before the next one is served */
    MESSAGE_BYTES_MAX = 65535,     /* the header's length field has 16 bits */
    EVENTS_MAX = 256,
    CONNECTIONS_MAX = 65536,
    TABLE_SLOTS_MIN = 256,
    TABLE_SLOTS_MAX = 1 << 20,     /* per switch; at most half of them are used, further hosts are not learned */
    THREADS_MAX = 64,
    IDLE_TIMEOUT_S = 60,
    HARD_TIMEOUT_S = 150,
    ADDRESS_AGE_S = 300,           /* longer than the timeouts of the flows made from an address */
    HANDSHAKE_S = 10,
    ECHO_AFTER_S = 1,              /* send an echo request after this silence; close after ECHO_LOST_S */
    ECHO_LOST_S = 4,
};

#define NO_BUFFER 0xffffffffu
#define VALID_KEY (1ull << 63)
#define VLAN_PRESENT 0x1000u

enum { V10 = 1, V13 = 4 };
enum { HELLO = 0, ERROR_MESSAGE = 1, ECHO_REQUEST = 2, ECHO_REPLY = 3, FEATURES_REQUEST = 5, FEATURES_REPLY = 6, SET_CONFIG = 9,
       PACKET_IN = 10, PORT_STATUS = 12, PACKET_OUT = 13, FLOW_MOD = 14, V10_BARRIER_REQUEST = 18, V13_MULTIPART_REQUEST = 18,
       V13_BARRIER_REQUEST = 20, V13_ROLE_REQUEST = 24 };
enum { ADD = 0, DELETE = 3 };
enum { V10_PORT_FLOOD = 0xfffb, V10_PORT_NONE = 0xffff };
#define V13_PORT_FLOOD 0xfffffffbu
#define V13_PORT_CONTROLLER 0xfffffffdu
#define V13_PORT_ANY 0xffffffffu

/* ---- bytes ---- */

static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return be16toh(v); }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return be32toh(v); }
static inline void put16(uint8_t *p, uint16_t v) { v = htobe16(v); memcpy(p, &v, 2); }
static inline void put32(uint8_t *p, uint32_t v) { v = htobe32(v); memcpy(p, &v, 4); }
static inline uint64_t get_mac(const uint8_t *p) { return (uint64_t)get16(p) << 32 | get32(p + 2); }

struct buffer { uint8_t *bytes; size_t length, capacity; };

/* Appends `count` uninitialised bytes and returns them; the caller fills them. */
static inline uint8_t *extend(struct buffer *b, size_t count)
{
    if (b->capacity - b->length < count) {
        size_t capacity = b->capacity ? b->capacity : 4096;
        while (capacity - b->length < count) capacity *= 2;
        b->bytes = realloc(b->bytes, capacity);
        if (!b->bytes) { perror("epoll-switch: out of memory"); exit(1); }
        b->capacity = capacity;
    }
    uint8_t *end = b->bytes + b->length;
    b->length += count;
    return end;
}

static uint8_t *message(struct buffer *out, uint8_t version, uint8_t type, uint16_t length, uint32_t xid)
{
    uint8_t *m = extend(out, length);
    memset(m, 0, length);
    m[0] = version, m[1] = type;
    put16(m + 2, length), put32(m + 4, xid);
    return m;
}

/* ---- the learning table ---- */

struct host { uint64_t key; uint32_t port; uint32_t heard_s; };
struct table { struct host *slots; uint32_t mask, used; };

static uint64_t hash_seed;

static inline uint32_t slot_of(const struct table *t, uint64_t key)
{
    return (uint32_t)(((key ^ hash_seed) * 0x9e3779b97f4a7c15ull) >> 32) & t->mask;
}

/* Returns the slot of `key`, or the empty slot where it belongs. At least half of the slots are empty, so the search ends. */
static inline struct host *probe(const struct table *t, uint64_t key)
{
    for (uint32_t i = slot_of(t, key);; i = (i + 1) & t->mask)
        if (t->slots[i].key == key || t->slots[i].key == 0) return &t->slots[i];
}

static void table_resize(struct table *t, uint32_t slots)
{
    struct table old = *t;
    t->slots = calloc(slots, sizeof *t->slots);
    if (!t->slots) { perror("epoll-switch: out of memory"); exit(1); }
    t->mask = slots - 1, t->used = 0;
    if (!old.slots) return;
    for (uint32_t i = 0; i <= old.mask; i++)
        if (old.slots[i].key) *probe(t, old.slots[i].key) = old.slots[i], t->used++;
    free(old.slots);
}

/* Rebuilds the table with the entries that `keep_port` and `oldest_s` allow (open addressing does not delete in place). */
static void table_sweep(struct table *t, uint32_t port_gone, uint32_t now_s)
{
    struct table fresh = {0};
    table_resize(&fresh, t->mask + 1);
    for (uint32_t i = 0; i <= t->mask; i++) {
        const struct host *h = &t->slots[i];
        if (!h->key || h->port == port_gone || now_s - h->heard_s > ADDRESS_AGE_S) continue;
        *probe(&fresh, h->key) = *h, fresh.used++;
    }
    free(t->slots);
    *t = fresh;
}

/* Records the port where `key` was heard. Returns its previous port if that was a different one, else 0. */
static inline uint32_t learn(struct table *t, uint64_t key, uint32_t port, uint32_t now_s)
{
    struct host *h = probe(t, key);
    if (__builtin_expect(h->key == key, 1)) {
        uint32_t before = h->port;
        h->heard_s = now_s;
        if (before == port) return 0;
        h->port = port;
        return before;
    }
    if (t->used * 2 > t->mask) {
        table_sweep(t, 0, now_s);
        if (t->used * 4 > t->mask) {
            if (t->mask + 1 >= TABLE_SLOTS_MAX) { if (t->used * 2 > t->mask) return 0; }
            else table_resize(t, (t->mask + 1) * 2);
        }
        h = probe(t, key);
    }
    *h = (struct host){key, port, now_s};
    t->used++;
    return 0;
}

static inline uint32_t lookup(const struct table *t, uint64_t key, uint32_t now_s)
{
    const struct host *h = probe(t, key);
    return h->key == key && now_s - h->heard_s <= ADDRESS_AGE_S ? h->port : 0;
}

/* ---- connections ---- */

struct connection {
    int fd;
    uint32_t place;              /* index in the loop's list */
    uint8_t version;             /* 0 until HELLO is received */
    bool ready;                  /* FEATURES_REPLY was received */
    bool blocked;                /* `unsent` waits for the socket */
    uint32_t since_s, heard_s;
    struct buffer partial;       /* beginning of an incomplete message */
    struct buffer unsent;
    size_t unsent_from;
    struct table table;
};

struct loop {
    int epoll, listener;
    uint32_t now_s;
    struct buffer out;           /* answers of this iteration, written at once */
    uint8_t *in;                 /* MESSAGE_BYTES_MAX bytes for a partial message, then READ_BYTES bytes */
    struct connection **connections;
    uint32_t count;
};

/* ---- answers ---- */

static void add_flow_v10(struct buffer *out, uint32_t buffer, uint16_t vlan, uint16_t in_port, const uint8_t *frame, uint16_t port)
{
    uint8_t *m = message(out, V10, FLOW_MOD, 80, 0);
    /* wildcards: all but in_port (1), dl_vlan (2), dl_src (4), dl_dst (8) */
    put32(m + 8, 0x003fffffu & ~0xfu);
    put16(m + 12, in_port);
    memcpy(m + 14, frame + 6, 6);
    memcpy(m + 20, frame, 6);
    put16(m + 26, vlan ? vlan & 0xfff : 0xffff);
    put16(m + 56, ADD), put16(m + 58, IDLE_TIMEOUT_S), put16(m + 60, HARD_TIMEOUT_S), put16(m + 62, 1);
    put32(m + 64, buffer);
    put16(m + 68, V10_PORT_NONE);
    put16(m + 74, 8), put16(m + 76, port); /* OUTPUT is action 0 */
}

static void send_packet_v10(struct buffer *out, uint32_t buffer, uint16_t in_port, const uint8_t *frame, size_t length, uint16_t port)
{
    size_t data = buffer == NO_BUFFER ? length : 0;
    uint8_t *m = extend(out, 24 + data);
    m[0] = V10, m[1] = PACKET_OUT;
    put16(m + 2, (uint16_t)(24 + data)), put32(m + 4, 0);
    put32(m + 8, buffer), put16(m + 12, in_port), put16(m + 14, 8);
    put16(m + 16, 0), put16(m + 18, 8), put16(m + 20, port), put16(m + 22, 0);
    memcpy(m + 24, frame, data);
}

static void add_flow_v13(struct buffer *out, uint32_t buffer, uint16_t vlan, uint32_t in_port, const uint8_t *frame, uint32_t port)
{
    uint8_t *m = message(out, V13, FLOW_MOD, 48 + 40 + 24, 0);
    m[25] = ADD;
    put16(m + 26, IDLE_TIMEOUT_S), put16(m + 28, HARD_TIMEOUT_S), put16(m + 30, 1);
    put32(m + 32, buffer), put32(m + 36, V13_PORT_ANY), put32(m + 40, V13_PORT_ANY);
    put16(m + 48, 1), put16(m + 50, 38);
    put32(m + 52, 0x80000004), put32(m + 56, in_port);
    put32(m + 60, 0x80000606), memcpy(m + 64, frame, 6);
    put32(m + 70, 0x80000806), memcpy(m + 74, frame + 6, 6);
    put32(m + 80, 0x80000c02), put16(m + 84, vlan);
    put16(m + 88, 4), put16(m + 90, 24); /* APPLY_ACTIONS */
    put16(m + 96, 0), put16(m + 98, 16), put32(m + 100, port);
}

static void send_packet_v13(struct buffer *out, uint32_t buffer, uint32_t in_port, const uint8_t *frame, size_t length, uint32_t port)
{
    size_t data = buffer == NO_BUFFER ? length : 0;
    uint8_t *m = extend(out, 40 + data);
    memset(m, 0, 40);
    m[0] = V13, m[1] = PACKET_OUT;
    put16(m + 2, (uint16_t)(40 + data));
    put32(m + 8, buffer), put32(m + 12, in_port), put16(m + 16, 16);
    put16(m + 26, 16), put32(m + 28, port);
    memcpy(m + 40, frame, data);
}

/* Deletes the flows to `mac` in `vlan` or, if `mac` is null, those that output to `port`. */
static void withdraw_flows(struct connection *c, struct buffer *out, const uint8_t *mac, uint16_t vlan, uint32_t port)
{
    if (c->version == V10) {
        uint8_t *m = message(out, V10, FLOW_MOD, 72, 0);
        put32(m + 8, mac ? 0x003fffffu & ~(2u | 8u) : 0x003fffffu);
        if (mac) memcpy(m + 20, mac, 6), put16(m + 26, vlan ? vlan & 0xfff : 0xffff);
        put16(m + 56, DELETE), put32(m + 64, NO_BUFFER);
        put16(m + 68, mac ? V10_PORT_NONE : (uint16_t)port);
        return;
    }
    uint8_t *m = message(out, V13, FLOW_MOD, mac ? 72 : 56, 0);
    m[25] = DELETE;
    put32(m + 32, NO_BUFFER), put32(m + 36, mac ? V13_PORT_ANY : port), put32(m + 40, V13_PORT_ANY);
    put16(m + 48, 1), put16(m + 50, mac ? 20 : 4);
    if (!mac) return; /* all flows except the table miss, which outputs to the controller, not to `port` */
    put32(m + 52, 0x80000606), memcpy(m + 56, mac, 6);
    put32(m + 62, 0x80000c02), put16(m + 66, vlan);
}

static void packet_in(struct loop *l, struct connection *c, const uint8_t *m, size_t length)
{
    uint32_t in_port = 0, total;
    size_t data;
    if (c->version == V10) {
        if (length < 18) return;
        in_port = get16(m + 14), data = 18;
    } else {
        if (length < 34) return;
        size_t match = get16(m + 26), end = 24 + match;
        if (match < 4 || (data = 24 + ((match + 7) & ~(size_t)7) + 2) > length) return;
        for (size_t at = 28; at + 4 <= end;) {
            size_t value = m[at + 3];
            if (at + 4 + value > end) return;
            if (get16(m + at) == 0x8000 && m[at + 2] == 0 && value == 4) { in_port = get32(m + at + 4); break; }
            at += 4 + value;
        }
    }
    uint32_t buffer = get32(m + 8);
    total = get16(m + 12);
    const uint8_t *frame = m + data;
    size_t size = length - data;
    if (in_port == 0 || size < 14 || (buffer == NO_BUFFER && size < total)) return;

    uint16_t vlan = 0, type = get16(frame + 12);
    if ((type == 0x8100 || type == 0x88a8) && size >= 18) vlan = VLAN_PRESENT | (get16(frame + 14) & 0xfff);
    uint64_t destination = get_mac(frame), source = get_mac(frame + 6), lane = VALID_KEY | (uint64_t)vlan << 48;
    if ((destination & 0xfffffffffff0ull) == 0x0180c2000000ull) return;
    if (!(frame[6] & 1) && learn(&c->table, lane | source, in_port, l->now_s))
        withdraw_flows(c, &l->out, frame + 6, vlan, 0);

    uint32_t port = frame[0] & 1 ? 0 : lookup(&c->table, lane | destination, l->now_s);
    if (port == in_port) return;
    if (c->version == V10) {
        if (port) add_flow_v10(&l->out, buffer, vlan, (uint16_t)in_port, frame, (uint16_t)port);
        if (!port || buffer == NO_BUFFER)
            send_packet_v10(&l->out, buffer, (uint16_t)in_port, frame, size, port ? (uint16_t)port : V10_PORT_FLOOD);
    } else {
        if (port) add_flow_v13(&l->out, buffer, vlan, in_port, frame, port);
        if (!port || buffer == NO_BUFFER)
            send_packet_v13(&l->out, buffer, in_port, frame, size, port ? port : V13_PORT_FLOOD);
    }
}

/* ---- handshake and the rest ---- */

static void send_hello(struct buffer *out)
{
    uint8_t *m = message(out, V13, HELLO, 16, 1);
    put16(m + 8, 1), put16(m + 10, 8), put32(m + 12, 1u << V10 | 1u << V13);
}

/* Returns the negotiated version: the highest common one if there is a bitmap, else the smaller of both; 0 if there is none. */
static uint8_t negotiate(const uint8_t *m, size_t length)
{
    for (size_t at = 8; at + 4 <= length;) {
        size_t element = get16(m + at + 2);
        if (element < 4 || at + element > length) break;
        if (get16(m + at) == 1 && element >= 8) {
            uint32_t bits = get32(m + at + 4);
            return bits & 1u << V13 ? V13 : bits & 1u << V10 ? V10 : 0;
        }
        at += (element + 7) & ~(size_t)7;
    }
    return m[0] >= V13 ? V13 : m[0] == V10 ? V10 : 0;
}

static void set_up(struct connection *c, struct buffer *out)
{
    uint8_t *m = message(out, c->version, SET_CONFIG, 12, 3);
    put16(m + 10, 0xffff); /* whole packets */
    if (c->version == V10) { message(out, V10, V10_BARRIER_REQUEST, 8, 4); return; }
    m = message(out, V13, V13_ROLE_REQUEST, 24, 4);
    put32(m + 8, 1); /* EQUAL: several controllers may connect, and generation ids are not needed */
    m = message(out, V13, V13_MULTIPART_REQUEST, 16, 5);
    put16(m + 8, 13); /* PORT_DESC */
    m = message(out, V13, FLOW_MOD, 80, 6); /* table miss: send the whole packet to the controller */
    put32(m + 32, NO_BUFFER), put32(m + 36, V13_PORT_ANY), put32(m + 40, V13_PORT_ANY);
    put16(m + 48, 1), put16(m + 50, 4);
    put16(m + 56, 4), put16(m + 58, 24), put16(m + 66, 16), put32(m + 68, V13_PORT_CONTROLLER), put16(m + 72, 0xffff);
    message(out, V13, V13_BARRIER_REQUEST, 8, 7);
}

static void port_status(struct loop *l, struct connection *c, const uint8_t *m, size_t length)
{
    if (length < (c->version == V10 ? 64u : 80u)) return;
    const uint8_t *port = m + 16;
    uint32_t number = c->version == V10 ? get16(port) : get32(port);
    uint32_t state = c->version == V10 ? get32(port + 28) : get32(port + 36);
    bool deleted = m[8] == 1, link_down = state & 1;
    if (!number || !(deleted || link_down)) return;
    table_sweep(&c->table, number, l->now_s);
    withdraw_flows(c, &l->out, NULL, 0, number);
}

/* Returns false if the connection must be closed; `why` is then the reason. */
static bool receive(struct loop *l, struct connection *c, const uint8_t *m, size_t length, const char **why)
{
    if (c->version == 0) {
        if (m[1] != HELLO) { *why = "a message before HELLO"; return false; }
        c->version = negotiate(m, length);
        if (c->version == 0) {
            static const char text[] = "versions 1.0 and 1.3 are spoken here";
            uint8_t *e = message(&l->out, m[0], ERROR_MESSAGE, 12 + sizeof text - 1, get32(m + 4));
            memcpy(e + 12, text, sizeof text - 1); /* HELLO_FAILED, INCOMPATIBLE: both 0 */
            *why = "no common version";
            return false;
        }
        message(&l->out, c->version, FEATURES_REQUEST, 8, 2);
        return true;
    }
    if (m[0] != c->version) {
        if (m[1] == HELLO) return true;
        *why = "a version other than the negotiated one";
        return false;
    }
    switch (m[1]) {
    case PACKET_IN:
        if (c->ready) packet_in(l, c, m, length);
        return true;
    case ECHO_REQUEST: {
        uint8_t *e = extend(&l->out, length);
        memcpy(e, m, length);
        e[1] = ECHO_REPLY;
        return true;
    }
    case FEATURES_REPLY:
        if (length < 32) { *why = "a short FEATURES_REPLY"; return false; }
        if (!c->ready) c->ready = true, set_up(c, &l->out);
        return true;
    case PORT_STATUS:
        port_status(l, c, m, length);
        return true;
    default:
        return true; /* other replies, errors, statistics: ignored */
    }
}

/* ---- the loop ---- */

static uint32_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint32_t)t.tv_sec;
}

static void watch(struct loop *l, struct connection *c, int operation)
{
    struct epoll_event e = {.events = c->blocked ? EPOLLOUT : EPOLLIN, .data.ptr = c};
    if (epoll_ctl(l->epoll, operation, c->fd, &e)) perror("epoll-switch: epoll_ctl");
}

static void drop(struct loop *l, struct connection *c, const char *why)
{
    fprintf(stderr, "epoll-switch: connection %d closed: %s\n", c->fd, why);
    close(c->fd);
    l->connections[c->place] = l->connections[--l->count];
    l->connections[c->place]->place = c->place;
    free(c->partial.bytes), free(c->unsent.bytes), free(c->table.slots), free(c);
}

/* Writes this iteration's answers; a rest is kept and stops reading. Returns false if the connection is broken. */
static bool flush(struct loop *l, struct connection *c)
{
    size_t sent = 0;
    while (sent < l->out.length) {
        ssize_t n = send(c->fd, l->out.bytes + sent, l->out.length - sent, MSG_NOSIGNAL);
        if (n > 0) { sent += (size_t)n; continue; }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        return false;
    }
    if (sent < l->out.length) {
        size_t left = l->out.length - sent;
        memcpy(extend(&c->unsent, left), l->out.bytes + sent, left);
        if (!c->blocked) c->blocked = true, watch(l, c, EPOLL_CTL_MOD);
    }
    l->out.length = 0;
    return true;
}

static void on_writable(struct loop *l, struct connection *c)
{
    while (c->unsent_from < c->unsent.length) {
        ssize_t n = send(c->fd, c->unsent.bytes + c->unsent_from, c->unsent.length - c->unsent_from, MSG_NOSIGNAL);
        if (n > 0) { c->unsent_from += (size_t)n; continue; }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        drop(l, c, strerror(errno));
        return;
    }
    c->unsent.length = c->unsent_from = 0;
    c->blocked = false;
    c->heard_s = l->now_s; /* it was not read while it was blocked, so the switch was not silent */
    watch(l, c, EPOLL_CTL_MOD);
}

static void on_readable(struct loop *l, struct connection *c)
{
    size_t kept = c->partial.length;
    uint8_t *begin = l->in + MESSAGE_BYTES_MAX - kept;
    ssize_t n = recv(c->fd, l->in + MESSAGE_BYTES_MAX, READ_BYTES, 0);
    if (n <= 0) {
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
        drop(l, c, n ? strerror(errno) : "closed by the switch");
        return;
    }
    memcpy(begin, c->partial.bytes ? c->partial.bytes : l->in, kept);
    c->heard_s = l->now_s;
    size_t have = kept + (size_t)n, at = 0;
    while (have - at >= 8) {
        const uint8_t *m = begin + at;
        size_t length = get16(m + 2);
        const char *why = "a length below 8";
        if (length >= 8 && have - at < length) break;
        if (length < 8 || !receive(l, c, m, length, &why)) {
            if (flush(l, c)) errno = 0;
            drop(l, c, why);
            l->out.length = 0;
            return;
        }
        at += length;
    }
    c->partial.length = 0;
    if (have > at) memcpy(extend(&c->partial, have - at), begin + at, have - at); /* less than one message: fits into the space before the read data */
    if (l->out.length && !flush(l, c)) {
        l->out.length = 0;
        drop(l, c, strerror(errno));
    }
}

static void on_connect(struct loop *l)
{
    int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) { if (errno != EAGAIN) perror("epoll-switch: accept"); return; }
    if (l->count == CONNECTIONS_MAX) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct connection *c = calloc(1, sizeof *c);
    if (!c) { close(fd); return; }
    c->fd = fd, c->since_s = c->heard_s = l->now_s, c->place = l->count;
    l->connections[l->count++] = c;
    table_resize(&c->table, TABLE_SLOTS_MIN);
    watch(l, c, EPOLL_CTL_ADD);
    send_hello(&l->out);
    if (!flush(l, c)) { l->out.length = 0; drop(l, c, strerror(errno)); }
}

static void every_second(struct loop *l)
{
    for (uint32_t i = l->count; i-- > 0;) {
        struct connection *c = l->connections[i];
        uint32_t silent_s = l->now_s - c->heard_s;
        if (!c->ready) {
            if (l->now_s - c->since_s > HANDSHAKE_S) drop(l, c, "no handshake in time");
        } else if (!c->blocked && silent_s > ECHO_LOST_S) {
            drop(l, c, "silent");
        } else if (!c->blocked && silent_s > ECHO_AFTER_S) {
            message(&l->out, c->version, ECHO_REQUEST, 8, 8);
            if (!flush(l, c)) { l->out.length = 0; drop(l, c, strerror(errno)); }
        }
    }
}

static void *run(void *argument)
{
    struct loop *l = argument;
    struct epoll_event events[EVENTS_MAX];
    uint32_t swept_s = l->now_s = seconds();
    for (;;) {
        int n = epoll_wait(l->epoll, events, EVENTS_MAX, 1000);
        if (n < 0 && errno != EINTR) { perror("epoll-switch: epoll_wait"); exit(1); }
        l->now_s = seconds();
        /* a connection has one event per iteration, and only its own event drops it: no event here points to freed memory */
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) on_connect(l);
            else if (c->blocked) on_writable(l, c);
            else on_readable(l, c);
        }
        if (l->now_s != swept_s) swept_s = l->now_s, every_second(l);
    }
    return NULL;
}

static int listen_on(const char *address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1) {
        fprintf(stderr, "epoll-switch: --address wants an IPv4 address, not %s\n", address);
        exit(2);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one); /* one listener per thread; the kernel distributes connections */
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096)) {
        fprintf(stderr, "epoll-switch: cannot listen on %s:%u: %s\n", address, port, strerror(errno));
        exit(1);
    }
    return fd;
}

static unsigned long number(const char *option, const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!*text || *end || value < 1 || value > max) {
        fprintf(stderr, "epoll-switch: --%s wants a number from 1 to %lu, not %s\n", option, max, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"port", 1, 0, 'p'}, {"address", 1, 0, 'a'}, {"threads", 1, 0, 't'}, {"help", 0, 0, 'h'}, {0}};
    static const char help[] = "usage: epoll-switch [--port 6653] [--address 127.0.0.1] [--threads 1]\n"
                               "A learning switch for OpenFlow 1.0 and 1.3, one epoll loop per thread.\n";
    const char *address = "127.0.0.1";
    unsigned long port = 6653, threads = 1;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'p') port = number("port", optarg, 65535);
        else if (o == 'a') address = optarg;
        else if (o == 't') threads = number("threads", optarg, THREADS_MAX);
        else { fputs(help, o == 'h' ? stdout : stderr); return o == 'h' ? 0 : 2; }
    }
    if (getrandom(&hash_seed, sizeof hash_seed, 0) != sizeof hash_seed) { perror("epoll-switch: getrandom"); return 1; }
    signal(SIGPIPE, SIG_IGN);
    struct loop *first = NULL;
    for (unsigned long i = 0; i < threads; i++) {
        struct loop *l = calloc(1, sizeof *l);
        if (!l || !(l->in = malloc(MESSAGE_BYTES_MAX + READ_BYTES)) || !(l->connections = calloc(CONNECTIONS_MAX, sizeof *l->connections))) {
            perror("epoll-switch: out of memory");
            return 1;
        }
        l->listener = listen_on(address, (uint16_t)port);
        l->epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
        if (l->epoll < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->listener, &e)) { perror("epoll-switch: epoll"); return 1; }
        pthread_t thread;
        if (i == 0) first = l;
        else if (pthread_create(&thread, NULL, run, l)) { perror("epoll-switch: thread"); return 1; }
    }
    printf("epoll-switch: listening on %s:%lu, %lu thread%s\n", address, port, threads, threads == 1 ? "" : "s");
    fflush(stdout);
    run(first);
}
