import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPackets } from '../../../test/support/shreds/rig.ts'
import { createTestLanes } from '../../../test/support/shreds/sha256-lanes.ts'
import type { Sha256 } from '../../core/sha256.ts'
import { BATCH_PACKETS, CELL_BYTES } from '../../platform/udp/port.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { hashLeaf } from '../../solana/shred/merkle.ts'
import { createShredHead, parseShred, scanShred } from '../../solana/shred/shred.ts'
import { BatchLeaves } from './batch-leaves.ts'

const HEADS = Array.from({ length: BATCH_PACKETS }, createShredHead)
const arena = new Uint8Array(BATCH_PACKETS * CELL_BYTES)

function receive(packets: readonly Uint8Array[]): void {
  packets.forEach((packet, cell) => {
    arena.set(packet, cell * CELL_BYTES)
    assert.equal(scanShred(arena, cell * CELL_BYTES, packet.length, HEADS[cell] as (typeof HEADS)[0]), undefined)
  })
}

/** Leaves with test lanes, and how many single hashes were made. */
function start() {
  const single = createNodeSha256()
  const counted = { singles: 0 }
  const sha256: Sha256 = {
    ...single,
    run(length) {
      counted.singles += 1
      single.run(length)
    },
  }
  const lanes = createTestLanes()
  const leaves = new BatchLeaves({ sha256, lanes })
  const leafOf = (cell: number): string => {
    leaves.hash(arena, cell * CELL_BYTES, (HEADS[cell] as (typeof HEADS)[0]).layout)
    return Buffer.from(sha256.output).toString('hex')
  }
  return { leaves, lanes, counted, leafOf }
}

function expectedLeaf(packet: Uint8Array): string {
  const parsed = parseShred(packet)
  assert.ok(parsed.ok)
  return Buffer.from(hashLeaf(parsed.shred.bytes, parsed.shred.layout)).toString('hex')
}

const prepare = (leaves: BatchLeaves, cells: readonly number[]): void =>
  leaves.prepare(arena, Uint16Array.from(cells), cells.length, HEADS)

test('the leaves of a batch are hashed together, those of data and coding shreds alike, and are those of single hashes', () => {
  const packets = blockPackets(7).slice(16, 16 + BATCH_PACKETS)
  receive(packets)
  const { leaves, lanes, counted, leafOf } = start()
  prepare(leaves, [...packets.keys()])
  for (const [cell, packet] of packets.entries()) assert.equal(leafOf(cell), expectedLeaf(packet))
  assert.deepEqual([lanes.runs, counted.singles], [[8, 8, 8, 8, 8, 8], 0])
})

test('one or two packets are hashed alone, since all lanes together take the time of two', () => {
  const packets = blockPackets(7).slice(0, 18)
  receive(packets)
  const { leaves, lanes, counted, leafOf } = start()
  prepare(leaves, [...packets.keys()])
  for (const [cell, packet] of packets.entries()) assert.equal(leafOf(cell), expectedLeaf(packet))
  assert.deepEqual([lanes.runs, counted.singles], [[8, 8], 2])
  prepare(leaves, [0, 5, 9])
  assert.deepEqual(lanes.runs, [8, 8, 3])
})

test('a leaf is not used for the packet that comes into its cell with the next batch', () => {
  receive(blockPackets(7).slice(0, 8))
  const { leaves, leafOf } = start()
  prepare(leaves, [0, 1, 2, 3, 4, 5, 6, 7])
  const next = blockPackets(8).slice(0, 8)
  receive(next)
  prepare(leaves, [1])
  for (const [cell, packet] of next.entries()) assert.equal(leafOf(cell), expectedLeaf(packet))
})

test('a packet elsewhere is hashed alone', () => {
  const packets = blockPackets(7).slice(0, 8)
  receive(packets)
  const { leaves, counted } = start()
  prepare(leaves, [0, 1, 2, 3, 4, 5, 6, 7])
  const [packet] = packets as [Uint8Array]
  const moved = new Uint8Array(100 + packet.length)
  moved.set(packet, 100)
  leaves.hash(moved, 100, (HEADS[0] as (typeof HEADS)[0]).layout)
  assert.equal(counted.singles, 1)
})
