import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, mutate, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import {
  archiveFile,
  cooked,
  cooked2,
  ethernet,
  ipv4,
  ipv6,
  pcapFile,
  pcapngFile,
  udpSegment,
} from '../../../test/support/shreds/captures.ts'
import { blockPackets, LEADER_ID } from '../../../test/support/shreds/rig.ts'
import { openCapture } from './capture.ts'
import { type FrameContent, readFrame } from './capture-packet.ts'
import { type Inspection, inspectCapture } from './inspect.ts'
import { createSlotAssembler } from './slot-assembler.ts'

const PACKETS = [...blockPackets(500, { sets: 2 }), ...blockPackets(501)]
const LEADERS = [{ fromSlot: 0, toSlot: 10_000, identities: [LEADER_ID] }]
const START_MS = 1_760_000_000_000

/** In chunks whose size divides nothing, as a stream may deliver them. */
async function* chunked(file: Uint8Array, size = 1009): AsyncIterable<Uint8Array> {
  for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size)
}

const timed = (wrap: (packet: Uint8Array) => Buffer) =>
  PACKETS.map((packet, at) => ({ frame: wrap(packet), atMs: START_MS + at }))
const inspect = (file: Uint8Array, port?: number): Promise<Inspection> =>
  inspectCapture(chunked(file), { slotMs: 400, leaders: LEADERS, ...(port === undefined ? {} : { port }) })

const over4 = (packet: Uint8Array) => ipv4(udpSegment(packet))
const FILES: readonly (readonly [string, Inspection['format'], Buffer])[] = [
  ['pcap, little endian', 'pcap', pcapFile(timed((packet) => ethernet(over4(packet))))],
  [
    'pcap, big endian',
    'pcap',
    pcapFile(
      timed((packet) => ethernet(over4(packet))),
      { little: false },
    ),
  ],
  [
    'pcap, nanoseconds',
    'pcap',
    pcapFile(
      timed((packet) => ethernet(over4(packet))),
      { nano: true },
    ),
  ],
  [
    'pcap, nanoseconds, big endian',
    'pcap',
    pcapFile(
      timed((p) => ethernet(over4(p))),
      { nano: true, little: false },
    ),
  ],
  ['pcap, raw IP', 'pcap', pcapFile(timed(over4), { link: 101 })],
  ['pcap, raw IP of BSD', 'pcap', pcapFile(timed(over4), { link: 12 })],
  [
    'pcap, loopback of BSD',
    'pcap',
    pcapFile(
      timed((p) => Buffer.concat([Buffer.of(2, 0, 0, 0), over4(p)])),
      { link: 0 },
    ),
  ],
  [
    'pcap, cooked',
    'pcap',
    pcapFile(
      timed((packet) => cooked(over4(packet))),
      { link: 113 },
    ),
  ],
  [
    'pcap, cooked 2',
    'pcap',
    pcapFile(
      timed((packet) => cooked2(over4(packet))),
      { link: 276 },
    ),
  ],
  [
    'pcap, loopback of OpenBSD',
    'pcap',
    pcapFile(
      timed((p) => Buffer.concat([Buffer.of(0, 0, 0, 2), over4(p)])),
      { link: 108 },
    ),
  ],
  ['pcap, raw IPv4', 'pcap', pcapFile(timed(over4), { link: 228 })],
  [
    'pcap, raw IPv6',
    'pcap',
    pcapFile(
      timed((packet) => ipv6(udpSegment(packet))),
      { link: 229 },
    ),
  ],
  ['pcap, IPv6', 'pcap', pcapFile(timed((packet) => ethernet(ipv6(udpSegment(packet)))))],
  ['pcap, tagged twice', 'pcap', pcapFile(timed((packet) => ethernet(over4(packet), [0x88a8, 0x8100])))],
  ['pcapng, little endian', 'pcapng', pcapngFile(timed((packet) => ethernet(over4(packet))))],
  [
    'pcapng, big endian',
    'pcapng',
    pcapngFile(
      timed((packet) => ethernet(over4(packet))),
      { little: false },
    ),
  ],
  [
    'pcapng, microseconds, cooked',
    'pcapng',
    pcapngFile(
      timed((p) => cooked(over4(p))),
      { link: 113, resolution: 6 },
    ),
  ],
  [
    'pcapng, two sections',
    'pcapng',
    Buffer.concat([
      pcapngFile(timed((packet) => ethernet(over4(packet))).slice(0, 100)),
      pcapngFile(timed((packet) => ethernet(over4(packet))).slice(100), { little: false }),
    ]),
  ],
  ['archive', 'ar', archiveFile(PACKETS)],
  ['plain', 'plain', Buffer.concat(PACKETS)],
]

for (const [name, format, file] of FILES) {
  test(`${name}: finds all shreds, rebuilds the blocks and checks signatures`, async () => {
    const found = await inspect(file)
    assert.equal(found.format, format)
    assert.equal(found.damage, null)
    assert.equal(found.records, PACKETS.length)
    assert.deepEqual([found.totals.packets, found.totals.malformed], [PACKETS.length, 0])
    assert.deepEqual(
      found.slots.map((slot) => [slot.slot, slot.data, slot.coding, slot.missing, slot.isComplete, slot.signature]),
      [
        [500, 64, 64, 0, true, 'good'],
        [501, 32, 32, 0, true, 'good'],
      ],
    )
    if (format === 'pcap' || format === 'pcapng') {
      const [first, second] = found.slots
      assert.ok(
        Math.abs((first?.firstMs ?? 0) - START_MS) < 0.01 && Math.abs((second?.firstMs ?? 0) - START_MS - 128) < 0.01,
      )
    }
  })
}

test('filters by port; a truncated file gives the records before the end and reports the damage', async () => {
  const file = pcapFile(timed((packet) => ethernet(over4(packet))))
  const none = await inspect(file, 9)
  assert.deepEqual([none.totals.packets, none.other.port], [0, PACKETS.length])
  assert.equal((await inspect(file, 20_001)).totals.packets, PACKETS.length)

  for (const whole of [
    file,
    pcapngFile(timed((packet) => ethernet(over4(packet)))),
    archiveFile(PACKETS),
    Buffer.concat(PACKETS),
  ]) {
    const cut = await inspect(whole.subarray(0, whole.length - 7))
    assert.match(cut.damage ?? '', /^the file ends inside a (record|block|member|shred) at byte \d+$/)
    assert.equal(cut.totals.packets, PACKETS.length - 1)
  }
  assert.match(
    (
      await inspect(
        Buffer.from('this is no capture, only a text.                                                            '),
      )
    ).damage ?? '',
    /^neither a capture nor a shred/,
  )
  const empty = await inspect(Buffer.alloc(0))
  assert.deepEqual([empty.records, empty.damage], [0, null])
})

const SEGMENT = udpSegment(Buffer.from('hello'))
const FRAMES: readonly (readonly [string, number, Buffer, string])[] = [
  ['IPv4', 1, ethernet(ipv4(SEGMENT)), 'hello'],
  ['IPv4 with options', 1, ethernet(ipv4(SEGMENT, { optionBytes: 12 })), 'hello'],
  ['IPv6 with extensions', 1, ethernet(ipv6(SEGMENT, [0, 43, 60])), 'hello'],
  ['padding after the packet', 1, Buffer.concat([ethernet(ipv4(SEGMENT)), Buffer.alloc(13)]), 'hello'],
  ['TCP', 1, ethernet(ipv4(SEGMENT, { protocol: 6 })), 'protocol'],
  ['ARP', 1, Buffer.concat([Buffer.alloc(12), Buffer.of(8, 6), Buffer.alloc(30)]), 'protocol'],
  ['a first fragment', 1, ethernet(ipv4(SEGMENT, { flags: 0x2000 })), 'fragment'],
  ['a later fragment', 1, ethernet(ipv4(SEGMENT, { flags: 0x0005 })), 'fragment'],
  ['a fragment of IPv6', 1, ethernet(ipv6(SEGMENT, [44])), 'fragment'],
  ['a cut packet', 1, ethernet(ipv4(SEGMENT)).subarray(0, -1), 'cut'],
  ['a cut header', 1, ethernet(ipv4(SEGMENT)).subarray(0, 30), 'cut'],
  ['a cut IPv6 header', 1, ethernet(ipv6(SEGMENT)).subarray(0, 40), 'cut'],
  ['an empty frame', 1, Buffer.alloc(0), 'protocol'],
  ['an unknown link type', 777, ethernet(ipv4(SEGMENT)), 'link'],
]

for (const [name, link, frame, expected] of FRAMES) {
  test(`frame: ${name}: ${expected}`, () => {
    const content: FrameContent = readFrame(link, frame)
    assert.equal(content.kind === 'udp' ? Buffer.from(content.payload).toString() : content.what, expected)
  })
}

test('mutated captures never throw', async (t) => {
  const random = createRandom(seedOf(t))
  const short = timed((packet) => ethernet(over4(packet))).slice(0, 3)
  const seeds = [
    pcapFile(short),
    pcapngFile(short),
    pcapngFile(short, { little: false }),
    archiveFile(PACKETS.slice(0, 3)),
    Buffer.concat(PACKETS.slice(0, 2)),
  ]
  let damaged = 0
  const runs = repeatsOf({ short: 1500, full: 50_000 })
  for (let run = 0; run < runs; run++) {
    const file = mutate(seeds[random(seeds.length)] as Buffer, random)
    const capture = await openCapture(chunked(file, 700))
    for await (const { link, bytes } of capture.records) if (link !== undefined) readFrame(link, bytes)
    if (capture.damage() !== undefined) damaged += 1
  }
  assert.ok(damaged > 100, `${damaged} were reported as damaged`)
})

test('counts frames without a complete UDP packet by cause and reads the rest', async () => {
  const cutShort = timed((packet) => ethernet(over4(packet))).map(({ frame, atMs }, at) => ({
    frame: at < 3 ? frame.subarray(0, 96) : frame,
    atMs,
  }))
  const more = [
    ...[0x2000, 0x00b9, 0x2001].map((flags) => ethernet(ipv4(udpSegment(PACKETS[0] as Uint8Array), { flags }))),
    ethernet(ipv6(udpSegment(PACKETS[0] as Uint8Array), [44])),
    ethernet(ipv4(Buffer.alloc(40), { protocol: 6 })),
  ].map((frame) => ({ frame, atMs: START_MS }))
  for (const file of [pcapFile([...more, ...cutShort]), pcapngFile([...more, ...cutShort], { little: false })]) {
    const { other, totals, records, damage } = await inspect(file)
    assert.deepEqual(other, { link: 0, protocol: 1, fragment: 4, cut: 3, port: 0 })
    assert.deepEqual([totals.packets, records, damage], [PACKETS.length - 3, PACKETS.length + 5, null])
  }
})

test('reads a capture built to exhaust memory and time to its end', async () => {
  // Each packet is of another slot and is marked as the last of 32,768.
  const [last] = blockPackets(1).slice(31) as [Uint8Array]
  async function* manySlots(count: number): AsyncIterable<Uint8Array> {
    for (let slot = 1; slot <= count; slot++) {
      const packet = Buffer.from(last)
      packet.writeBigUInt64LE(BigInt(slot * 7), 65)
      packet.writeUInt32LE(32_767, 73)
      packet.writeUInt32LE(32_736, 79)
      packet[85] = 0xc0
      yield packet
    }
  }
  const many = repeatsOf({ short: 4000, full: 150_000 })
  const spread = await inspectCapture(manySlots(many), { slotMs: 400 })
  assert.equal(spread.totals.slots, many)
  assert.equal(spread.slots.length + spread.slotsUnlisted, many)
  assert.ok(spread.slots.length <= 100_000)
  assert.deepEqual(spread.slots[0]?.gaps, [[0, 32_766]])
  assert.equal(spread.slots[0]?.missing, 32_767)

  // All packets are of one slot, each with a different signature.
  const assembler = createSlotAssembler({ slotsMax: 4, shredsMax: 500 })
  const counts = new Map<string, number>()
  for (let i = 0; i < 2000; i++) {
    const packet = Buffer.from(last)
    packet.writeUInt32LE(i, 0)
    const outcome = assembler.receive(packet, 0)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  }
  assert.deepEqual(Object.fromEntries(counts), { new: 501, late: 1499 })
})
