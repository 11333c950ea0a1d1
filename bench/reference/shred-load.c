/*
 * Sends shreds from a file to a port at a steady rate, and is also the receiver: it holds the destinations' ports open and measures how
 * long packets take to the last of them.
 *   shred-load FILE TARGET_PORT RATE SECONDS N FIRST_DESTINATION_PORT REPEAT LATENCY
 * The file has records of a u16 length and the packet. RATE 0 is as fast as possible. With REPEAT 1 the file is sent repeatedly, each
 * time with a higher slot, so that every packet is new; signatures are then invalid. With LATENCY 1 the last destination is read, by the one
 * thread that also sends: it polls for packets whenever none is due, so that neither waits for the other.
 * Prints what was sent, and the latency in microseconds, of all packets, of those in the first two seconds and of the others; then holds the ports open until its standard input ends.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BURST 16
#define EARLY_SECONDS 2
#define SLOT_BYTES 1240
#define TABLE (1u << 20)
#define SAMPLES_MAX 2000000

static double sent_at[TABLE];
static uint64_t sent_key[TABLE];
static float samples[SAMPLES_MAX];
static long sample_count, early_count;
static double early_until;
static int sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Slot, index and kind identify a shred. */
static uint64_t key_of(const unsigned char *packet) {
  uint64_t slot;
  uint32_t index;
  memcpy(&slot, packet + 65, 8);
  memcpy(&index, packet + 73, 4);
  return (slot << 20) | ((uint64_t)index << 1) | ((packet[64] >> 4) < 8);
}
static uint32_t place_of(uint64_t key) { return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 44) & (TABLE - 1); }

/* Reads the packets at the last destination; false when there are none. */
static int look(void) {
  unsigned char packet[2048];
  ssize_t length = recv(sink, packet, sizeof packet, MSG_DONTWAIT);
  if (length < 1203) return 0;
  double at = now();
  uint64_t key = key_of(packet);
  uint32_t place = place_of(key);
  if (sent_key[place] == key && sample_count < SAMPLES_MAX) {
    samples[sample_count++] = (float)((at - sent_at[place]) * 1e6);
    if (at < early_until) early_count = sample_count;
  }
  return 1;
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Sorts the samples. */
static void print_percentiles(float *from, long count) {
  qsort(from, (size_t)count, sizeof *from, by_value);
  double shares[] = {0.5, 0.99, 0.999};
  const char *names[] = {"p50", "p99", "p999"};
  for (int i = 0; i < 3; i++)
    printf("%s\"%s\":%.1f", i ? "," : "", names[i], count ? from[(long)((double)count * shares[i])] : 0.0);
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int main(int argc, char **argv) {
  if (argc != 9) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  double rate = atof(argv[3]), seconds = atof(argv[4]);
  int destinations = atoi(argv[5]), repeat = atoi(argv[7]), latency = atoi(argv[8]);
  FILE *file = fopen(argv[1], "rb");
  if (!file) { perror("file"); return 1; }
  size_t room = 1 << 16, count = 0;
  unsigned char(*packets)[SLOT_BYTES] = malloc(room * SLOT_BYTES);
  uint16_t *lengths = malloc(room * sizeof *lengths);
  uint16_t length;
  while (fread(&length, 2, 1, file) == 1) {
    if (length > SLOT_BYTES) return 1;
    if (count == room) {
      room *= 2;
      packets = realloc(packets, room * SLOT_BYTES);
      lengths = realloc(lengths, room * sizeof *lengths);
    }
    if (fread(packets[count], 1, length, file) != length) return 1;
    lengths[count++] = length;
  }
  if (count < BURST) return 1;
  uint64_t first_slot, last_slot;
  memcpy(&first_slot, packets[0] + 65, 8);
  memcpy(&last_slot, packets[count - 1] + 65, 8);
  uint64_t step = last_slot - first_slot + 1;

  for (int i = 0; i < destinations; i++) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int is_last = latency && i == destinations - 1;
    int size = is_last ? 8 * 1024 * 1024 : 2048;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (is_last) setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    struct sockaddr_in address = loopback(atoi(argv[6]) + i);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) { perror("bind"); return 1; }
    if (is_last) sink = fd;
  }
  int out = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in target = loopback(atoi(argv[2]));
  connect(out, (struct sockaddr *)&target, sizeof target);
  struct mmsghdr headers[BURST];
  struct iovec vectors[BURST];
  memset(headers, 0, sizeof headers);
  double begin = now(), end = begin + seconds;
  early_until = begin + EARLY_SECONDS;
  unsigned long sent = 0, pass = 0;
  size_t at = 0;
  /* A steady stream for latency; bursts where only the rate counts. */
  int burst = latency ? 1 : BURST;
  for (;;) {
    double t = now();
    if (t >= end || (!repeat && at + (size_t)burst > count)) break;
    if (rate > 0) {
      double due = begin + (double)sent / rate;
      if (t < due) {
        if (latency) {
          look();
          continue;
        }
        struct timespec pause = {.tv_nsec = (long)((due - t) * 1e9 * 0.8)};
        if (due - t > 2e-4 && pause.tv_nsec < 1000000000) nanosleep(&pause, NULL);
        continue;
      }
    }
    int n = 0;
    for (; n < burst; n++) {
      if (at == count) {
        if (!repeat) break;
        at = 0;
        pass++;
      }
      unsigned char *packet = packets[at];
      if (pass > 0) {
        uint64_t slot;
        memcpy(&slot, packet + 65, 8);
        slot += step;
        memcpy(packet + 65, &slot, 8);
      }
      vectors[n] = (struct iovec){packet, lengths[at]};
      headers[n].msg_hdr.msg_iov = &vectors[n];
      headers[n].msg_hdr.msg_iovlen = 1;
      if (latency) {
        uint64_t key = key_of(packet);
        sent_key[place_of(key)] = key;
        sent_at[place_of(key)] = now();
      }
      at++;
    }
    int done = sendmmsg(out, headers, (unsigned)n, 0);
    if (done > 0) sent += (unsigned long)done;
  }
  double took = now() - begin;
  for (double until = now() + 0.3; now() < until;)
    if (!latency || !look()) usleep(1000);
  printf("{\"sent\":%lu,\"seconds\":%.3f,\"measured\":%ld,", sent, took, sample_count);
  printf("\"first\":{");
  print_percentiles(samples, early_count);
  printf("},\"later\":{");
  print_percentiles(samples + early_count, sample_count - early_count);
  printf("},");
  print_percentiles(samples, sample_count);
  puts("}");
  fflush(stdout);
  while (getchar() != EOF) {}
  return 0;
}
