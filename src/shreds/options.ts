import { z } from 'zod'
import { integer, section } from '../contract/option-fields.ts'
import { networkOption } from '../platform/config/network-option.ts'
import { THREAD_PRIORITIES } from '../platform/native/thread-schedule.ts'
import { isAddressOrNetwork } from '../platform/net/client-address.ts'
import { UDP_ENGINES } from '../platform/udp/port.ts'
import { decodedOptions } from './decoded/options.ts'

const MIB = 1024 * 1024

/** `IP:PORT` to receive on; port 0 lets the system choose. */
const LISTEN = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([0-9.]{7,15})):(\d{1,5})$/

const rate = (most: number) => integer(1, most)

/** ShredStream Raw: sources of shreds, checks, rate caps and destinations. */
export const shredsOptions = z.strictObject({
  enabled: z.boolean().default(true).describe('Relay shreds in `serve`.'),
  listen: z
    .string()
    .regex(LISTEN, 'give IP:PORT')
    .refine((text) => isAddressOrNetwork(parseListen(text).host), 'the host is not an IP address')
    .refine((text) => parseListen(text).port <= 65_535, 'a port is at most 65535')
    .default('127.0.0.1:20000')
    .describe('UDP address that shreds are received on.'),
  sources: z
    .array(networkOption)
    .min(1)
    .max(64)
    .default(['127.0.0.1', '::1'])
    .describe('Addresses and networks shreds are accepted from; packets from other addresses are dropped and counted.'),
  engine: z
    .enum(UDP_ENGINES)
    .optional()
    .describe('How packets are received and sent; default: the fastest engine that works on this machine.'),
  version: integer(0, 65_535)
    .optional()
    .describe('Shred version of the cluster; default: the version of the packets received.'),
  signatures: z
    .enum(['auto', 'off'])
    .default('auto')
    .describe('`auto` checks merkle proof and leader signature wherever the leader of the slot is known, `off` never.'),
  signatureFailuresPerSecond: integer(1, 10_000)
    .default(200)
    .describe(
      'Failed signature checks per second; beyond them, shreds of FEC sets that are not yet verified are dropped unchecked.',
    ),
  shredsPerSlotMax: integer(64, 32_768)
    .multipleOf(32)
    .optional()
    .describe(
      'Shred indexes per slot. By default it follows the length of a slot of the chain: 32768 at 400 ms, 16384 at 200 ms.',
    ),
  window: section('Which slots count as current.', {
    backMs: integer(3200, 204_800)
      .default(25_600)
      .describe(
        'Slots behind the newest that are still relayed, as the time they take in the length of a slot of the chain.',
      ),
    aheadMs: integer(1600, 204_800)
      .default(12_800)
      .describe('Slots that a packet may be ahead of the newest, as the time they take.'),
    backSlots: integer(8, 512)
      .optional()
      .describe('Earlier form of backMs, in slots of 400 ms; where it is set, it counts.'),
    aheadSlots: integer(4, 512)
      .optional()
      .describe('Earlier form of aheadMs, in slots of 400 ms; where it is set, it counts.'),
  }),
  receiveBufferBytes: integer(64 * 1024, 1024 * MIB)
    .default(25 * MIB)
    .describe('Receive buffer requested from the kernel; the log line at start has the size granted.'),
  sendBufferBytes: integer(64 * 1024, 256 * MIB)
    .default(4 * MIB)
    .describe('Send buffer of each destination.'),
  caps: section('Rates that are never exceeded; packets above them are dropped and counted.', {
    destinationPacketsPerSecond: rate(10_000_000).default(20_000).describe('Packets per second to one destination.'),
    destinationBytesPerSecond: rate(12_500_000_000)
      .default(25_000_000)
      .describe('Bytes per second to one destination.'),
    totalPacketsPerSecond: rate(100_000_000).default(1_000_000).describe('Packets per second to all destinations.'),
    totalBytesPerSecond: rate(125_000_000_000).default(1_250_000_000).describe('Bytes per second to all destinations.'),
  }),
  destinations: section('Which destinations are allowed.', {
    allowLoopback: z
      .boolean()
      .optional()
      .describe(
        'Allow loopback destinations, for development (default: only where neither a file nor the environment has a configuration).',
      ),
    allowPrivate: z.boolean().default(false).describe('Allow destinations in private networks.'),
    max: integer(1, 10_000).default(1000).describe('Destinations served at once.'),
  }),
  sourceLostMs: integer(1000, 600_000)
    .default(10_000)
    .describe(
      'Time without a packet from any source after which the service is degraded. Before the first packet it counts while at least one destination is served.',
    ),
  reportDays: integer(1, 400).default(90).describe('Days that delivery reports are kept.'),
  relay: section('How the kernel schedules the relay thread.', {
    priority: z
      .enum(THREAD_PRIORITIES)
      .default('normal')
      .describe(
        '`raised` is nice -10, which counts among the threads of this service; `realtime` is SCHED_FIFO, before all other programs. For the relay and the thread that checks signatures for it. What is not permitted is logged and shown by `sluice doctor`; `ops/systemd/relay-priority.conf` permits both, and gives the service more weight against others.',
      ),
    core: integer(0, 1023).optional().describe('Processor that the relay thread stays on.'),
    busyPollMicros: integer(0, 1000)
      .default(0)
      .describe(
        'How long the relay looks for the next packet before it sleeps (also SO_BUSY_POLL). Uses most of a core while packets come.',
      ),
  }),
  decoded: decodedOptions,
})

export type ShredsOptions = z.output<typeof shredsOptions>
export type ShredsOptionsInput = z.input<typeof shredsOptions>

export function parseShredsOptions(input: ShredsOptionsInput = {}): ShredsOptions {
  return shredsOptions.parse(input)
}

export function parseListen(text: string): { host: string; port: number } {
  const match = LISTEN.exec(text)
  return { host: match?.[1] ?? match?.[2] ?? '', port: Number(match?.[3]) }
}
