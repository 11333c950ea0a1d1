import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { encodeBlockMarker, encodeOpaqueMarker } from '../../src/solana/shred/block-marker.ts'
import { encodeEntries } from '../../src/solana/shred/entry.ts'
import { makeShreds } from '../../src/solana/shred/make.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { archiveFile, ethernet, ipv4, pcapFile, pcapngFile, udpSegment } from '../support/shreds/captures.ts'
import { blockPackets, LEADER, LEADER_ID, VERSION } from '../support/shreds/rig.ts'

type Inspected = {
  format: string
  damage: string | null
  totals: { packets: number; malformed: number; slots_complete: number; faults: Record<string, number> }
  slots: {
    slot: number
    signature: string
    is_complete: boolean
    recovered: number
    block: { sha256: string } | null
  }[]
}

const home = await temporaryFolder()
after(() => home[Symbol.asyncDispose]())
const packets = [...blockPackets(400, { sets: 2 }), ...blockPackets(401)]
const frames = packets.map((packet, at) => ({ frame: ethernet(ipv4(udpSegment(packet))), atMs: at }))

async function inspect(name: string, file: Uint8Array, ...words: string[]): Promise<Inspected> {
  writeFileSync(home.file(name), file)
  const { code, stdout, stderr } = await sluiceHere(['shred', 'inspect', home.file(name), '--json', ...words])
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as Inspected
}

test('captures of every format give the same result', async () => {
  const found = [
    await inspect('a.pcap', pcapFile(frames), '--leader', LEADER_ID),
    await inspect('a.pcapng', pcapngFile(frames), '--leader', LEADER_ID, '--port', '20001'),
    await inspect('a.pcap.gz', gzipSync(pcapFile(frames, { nano: true, little: false })), '--leader', LEADER_ID),
    await inspect(`kind-${LEADER_ID}.ar`, archiveFile(packets)),
    await inspect('plain.bin', Buffer.concat(packets), '--leader', LEADER_ID),
  ]
  assert.deepEqual(
    found.map(({ format }) => format),
    ['pcap', 'pcapng', 'pcap', 'ar', 'plain'],
  )
  for (const { damage, totals, slots } of found) {
    assert.deepEqual([damage, totals.packets, totals.malformed, totals.slots_complete], [null, packets.length, 0, 2])
    assert.deepEqual(
      slots.map(({ slot, signature, is_complete, block }) => [slot, signature, is_complete, block?.sha256]),
      found[0]?.slots.map(({ slot, block }) => [slot, 'good', true, block?.sha256]),
    )
  }
})

test('renamed fields and columns have their former names too', async () => {
  const { slots } = await inspect('plain.bin', Buffer.concat(packets))
  const { is_whole, code, sets, odd } = slots[0] as unknown as Record<string, unknown>
  assert.deepEqual([is_whole, code, sets, odd], [true, 64, 2, 0])
  const { stdout } = await sluiceHere(['shred', 'inspect', home.file('plain.bin'), '-o', 'csv'])
  assert.match(stdout, /,coding,fec_sets,.*,inconsistent,signature,is_complete,.*,code,sets,odd,whole,whole_after_ms\n/)
})

test('names the faults of malformed packets, in JSON and in the table', async () => {
  const broken = packets.map((packet) => Uint8Array.from(packet))
  ;(broken[0] as Uint8Array)[64] = 0xa5
  ;(broken[1] as Uint8Array).set([0, 0, 0, 0x7f], 73)
  const file = pcapFile(broken.map((packet, at) => ({ frame: ethernet(ipv4(udpSegment(packet))), atMs: at })))
  const { totals, slots } = await inspect('broken.pcap', file)
  assert.deepEqual(totals.faults, { variant: 1, 'index-too-large': 1 })
  assert.deepEqual([slots[0]?.is_complete, slots[0]?.recovered, slots[0]?.signature], [true, 2, 'unknown'])

  const { code, stdout, stderr } = await sluiceHere(['shred', 'inspect', home.file('broken.pcap')])
  assert.equal(code, 0)
  assert.match(stdout, /SLOT +DATA +CODING/)
  assert.match(stdout, /malformed +2 \(variant 1, index-too-large 1\)/)
  assert.match(stderr, /pcap: 192 records/)
})

test('fails with a reason for a file without shreds or a missing file', async () => {
  writeFileSync(home.file('garbled.gz'), Buffer.concat([Buffer.of(0x1f, 0x8b), Buffer.alloc(100, 7)]))
  writeFileSync(home.file('text'), `${'some text and nothing else '.repeat(20)}`)
  for (const [name, message] of [
    ['text', /contains no UDP packets and no shreds/],
    ['nowhere.pcap', /cannot be read/],
    ['nowhere.pcap.gz', /cannot be read/],
    ['.', /cannot be read/],
    ['garbled.gz', /cannot be read/],
  ] as const) {
    const { code, stderr } = await sluiceHere(['shred', 'inspect', home.file(name)])
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
  }
  assert.notEqual((await sluiceHere(['shred', 'inspect'])).code, 0)
  assert.notEqual((await sluiceHere(['shred', 'listen', 'port'])).code, 0)
})

test('recognizes gzip by its bytes; a truncated gzip file gives the records before the end', async () => {
  const packed = gzipSync(pcapFile(frames))
  assert.equal((await inspect('packed.pcap', packed)).totals.packets, packets.length)
  const cut = await inspect('cut.pcap', packed.subarray(0, packed.length - 100))
  assert.match(cut.damage ?? '', /cannot be decompressed to its end/)
  assert.ok(cut.totals.packets > 0 && cut.totals.packets < packets.length, `${cut.totals.packets}`)
})

test('prints the block markers of a slot and the parent after an update', async () => {
  const hash = new Uint8Array(32).fill(4)
  const { sets } = makeShreds({
    slot: 400,
    parentSlot: 399,
    version: VERSION,
    batches: [
      encodeBlockMarker({ variant: 'update-parent', parentSlot: 397, parentBlockId: hash }),
      encodeEntries([{ numHashes: 0n, hash, transactions: [] }]),
      encodeOpaqueMarker({ version: 1, kind: 77, body: Uint8Array.of(1) }),
      encodeBlockMarker({ variant: 'block-footer', bankHash: hash, producerTimeNanos: 5n, userAgent: 'node/1' }),
    ],
    chainedRoot: new Uint8Array(32),
    leader: LEADER,
  })
  const file = Buffer.concat(sets.flatMap(({ data, code }) => [...data, ...code]))
  const { slots } = await inspect('markers.bin', file)
  const [slot] = slots as unknown as { parent_slot: number; block: { undecodable: number; markers_listed: object[] } }[]
  assert.deepEqual([slot?.parent_slot, slot?.block.undecodable], [397, 0])
  assert.deepEqual(slot?.block.markers_listed[2], {
    variant: 'block-footer',
    version: 1,
    kind: 0,
    shred: 96,
    bank_hash: encodeBase58(hash),
    producer_time_nanos: '5',
    user_agent: 'node/1',
  })
  const { stdout } = await sluiceHere(['shred', 'inspect', home.file('markers.bin')])
  assert.match(stdout, /MARKERS/)
  assert.match(stdout, /update-parent 397, kind 77, block-footer/)
})
