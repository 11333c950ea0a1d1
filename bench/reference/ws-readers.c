/*
 * Many WebSocket clients in one thread, which do as little as a client can: they count the frames they read, and record the age of those of
 * every tenth client. A reader that parsed every message would measure mostly itself.
 *   ws-readers PORT PATH TOKEN CLIENTS SUBSCRIBE MEASURE_MS
 * TOKEN and SUBSCRIBE may be empty; a client is connected at its first frame. Prints "ready" when all are, begins to count when it reads a
 * line, and prints one JSON line after MEASURE_MS. A message contains its creation time as "t":<milliseconds of the monotonic clock>, as a
 * number or a string. Ends with its parent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 20000
#define READ_BYTES 65536
#define EVENTS 256
#define AGE_EVERY 10
#define NAP_US 1000
/** Ages in tenths of a millisecond, up to a minute. */
#define AGES_MAX 600000
/** The prefix of a message that is searched for its time. */
#define TIME_WITHIN 256

struct client {
  int fd;
  int is_probe;
  /** Of the frame being read: remaining bytes, and the header bytes so far. */
  uint64_t left;
  uint8_t head[10];
  int head_bytes;
  /** The beginning of a message whose time is not found yet. */
  char text[TIME_WITHIN + 1];
  int text_bytes;
};

static struct client clients[CLIENTS_MAX];
static uint32_t ages[AGES_MAX];
static uint64_t age_count, frames, bytes, closed;
static int is_counting;
static char buffer[READ_BYTES];

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/** Processor time of this program so far. */
static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void note_age(struct client *c, double at_ms) {
  c->text[c->text_bytes] = 0;
  const char *found = strstr(c->text, "\"t\":");
  if (found == NULL || !is_counting) return;
  found += 4;
  while (*found == '"' || *found == ' ') found++;
  double age = (at_ms - atof(found)) * 10;
  ages[age < 0 ? 0 : age >= AGES_MAX ? AGES_MAX - 1 : (uint32_t)age]++;
  age_count++;
}

/** Reads the frames, which a server does not mask (RFC 6455 section 5.2), in chunks of any size. */
static void walk(struct client *c, const char *data, size_t length, double at_ms) {
  size_t at = 0;
  while (at < length) {
    if (c->left > 0) {
      size_t part = length - at < c->left ? length - at : c->left;
      if (c->is_probe && c->text_bytes < TIME_WITHIN) {
        size_t room = TIME_WITHIN - (size_t)c->text_bytes;
        size_t taken = part < room ? part : room;
        memcpy(c->text + c->text_bytes, data + at, taken);
        c->text_bytes += (int)taken;
      }
      at += part;
      c->left -= part;
      if (c->left == 0) {
        frames++;
        if (c->is_probe) note_age(c, at_ms);
      }
      continue;
    }
    c->head[c->head_bytes++] = (uint8_t)data[at++];
    if (c->head_bytes < 2) continue;
    int kind = c->head[1] & 0x7f;
    int needed = kind < 126 ? 2 : kind == 126 ? 4 : 10;
    if (c->head_bytes < needed) continue;
    uint64_t size = kind < 126 ? (uint64_t)kind : 0;
    for (int i = 2; i < needed; i++) size = size << 8 | c->head[i];
    c->left = size;
    c->head_bytes = 0;
    c->text_bytes = 0;
  }
}

/** Masked with zeros, which changes nothing. */
static void send_text(int fd, const char *text) {
  size_t length = strlen(text);
  uint8_t head[8] = {0x81, (uint8_t)(0x80 | (length < 126 ? length : 126)), (uint8_t)(length >> 8), (uint8_t)length};
  if (length < 126) memset(head + 2, 0, 2);
  size_t head_bytes = length < 126 ? 6 : 8;
  if (write(fd, head, head_bytes) < 0 || write(fd, text, length) < 0) fail("write");
}

/** Reads until the response headers are complete; the bytes after them are read as frames. */
static void handshake(struct client *c) {
  char answer[16384];
  size_t have = 0;
  for (;;) {
    ssize_t got = read(c->fd, answer + have, sizeof answer - 1 - have);
    if (got <= 0) fail("handshake");
    have += (size_t)got;
    answer[have] = 0;
    char *end = strstr(answer, "\r\n\r\n");
    if (end == NULL) continue;
    if (strncmp(answer, "HTTP/1.1 101", 12) != 0) {
      fprintf(stderr, "%s\n", answer);
      exit(1);
    }
    size_t head = (size_t)(end - answer) + 4;
    walk(c, answer + head, have - head, 0);
    return;
  }
}

static void open_client(struct client *c, int port, const char *path, const char *token, const char *subscribe) {
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0) fail("connect");
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  char request[1024];
  int length = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s%s%s\r\n",
                        path, *token ? "x-token: " : "", token, *token ? "\r\n" : "");
  if (write(c->fd, request, (size_t)length) < 0) fail("write");
  uint64_t before = frames;
  handshake(c);
  if (*subscribe) send_text(c->fd, subscribe);
  while (frames == before) {
    ssize_t got = read(c->fd, buffer, READ_BYTES);
    if (got <= 0) fail("first frame");
    walk(c, buffer, (size_t)got, 0);
  }
}

static double age_at(double share) {
  uint64_t wanted = (uint64_t)((double)age_count * share), seen = 0;
  for (uint32_t i = 0; i < AGES_MAX; i++)
    if ((seen += ages[i]) > wanted) return i / 10.0;
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int port = atoi(argv[1]), count = atoi(argv[4]);
  double measure_ms = atof(argv[6]);
  if (count > CLIENTS_MAX) return 2;
  struct rlimit files = {(rlim_t)count + 64, (rlim_t)count + 64};
  setrlimit(RLIMIT_NOFILE, &files);
  int poll = epoll_create1(0);
  for (int i = 0; i < count; i++) {
    clients[i].is_probe = i % AGE_EVERY == 0;
    open_client(&clients[i], port, argv[2], argv[3], argv[5]);
    fcntl(clients[i].fd, F_SETFL, O_NONBLOCK);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &clients[i]};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].fd, &wanted) < 0) fail("epoll_ctl");
  }
  struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(poll, EPOLL_CTL_ADD, 0, &input) < 0) fail("epoll_ctl of stdin");
  printf("\"ready\"\n");
  fflush(stdout);
  double begin_ms = 0, begin_cpu_ms = 0;
  for (;;) {
    struct epoll_event events[EVENTS];
    int got = epoll_wait(poll, events, EVENTS, 0);
    double at_ms = now_ms();
    // Not woken by each message, which would be work of the sender's core: customers are on machines of their own.
    if (got == 0) usleep(NAP_US);
    if (is_counting && at_ms - begin_ms >= measure_ms) {
      printf("{\"messages\":%lu,\"bytes\":%lu,\"seconds\":%.3f,\"ageP50Ms\":%.1f,\"ageP99Ms\":%.1f,\"closed\":%lu,\"cpuMs\":%.1f}\n",
             (unsigned long)frames, (unsigned long)bytes, (at_ms - begin_ms) / 1e3, age_at(0.5), age_at(0.99), (unsigned long)closed,
             cpu_ms() - begin_cpu_ms);
      return 0;
    }
    for (int i = 0; i < got; i++) {
      struct client *c = events[i].data.ptr;
      ssize_t length = read(c == NULL ? 0 : c->fd, buffer, READ_BYTES);
      if (c == NULL) {
        if (length <= 0) return 1;
        is_counting = 1;
        frames = bytes = 0;
        begin_ms = now_ms();
        begin_cpu_ms = cpu_ms();
        continue;
      }
      if (length <= 0) {
        if (length < 0 && errno == EAGAIN) continue;
        closed++;
        close(c->fd);
        continue;
      }
      bytes += (uint64_t)length;
      walk(c, buffer, (size_t)length, c->is_probe ? now_ms() : 0);
    }
  }
}
