import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { dataNodeOf } from './data-node.ts'
import { buildTree, hashLeaf } from './merkle.ts'
import { encodeShards } from './reed-solomon.ts'
import { createScalarShards, ShardRecovery } from './shard-recovery.ts'
import { createSimdShards } from './shard-simd.ts'
import { LAYOUTS } from './shred.ts'

for (const [name, create] of [
  ['vector', createSimdShards],
  ['scalar', createScalarShards],
] as const) {
  test(`any 32 of 64 shards rebuild the missing data shards, with ${name} instructions`, (t) => {
    const random = createRandom(seedOf(t))
    const recovery = new ShardRecovery(create())
    const runs = repeatsOf({ short: 60, full: 2000 })
    for (let run = 0; run < runs; run++) {
      const length = [987, 923, 1, 16][run % 4] as number
      const data = Array.from({ length: 32 }, () => randomBytesOf(random, length))
      const all = [...data, ...encodeShards(data)]
      // Shards lie anywhere, in any order.
      const order = Array.from({ length: 64 }, (_, i) => i).sort(() => random(3) - 1)
      const positions = Uint8Array.from(order.slice(0, 32).sort((a, b) => a - b))
      const missing = Uint8Array.from({ length: 32 }, (_, i) => i).filter((i) => !positions.includes(i))
      const bytes = Buffer.concat(all.map((shard) => Buffer.concat([shard, Buffer.alloc(3, 0xff)])))
      const at = Int32Array.from(positions, (position) => position * (length + 3))
      recovery.rebuild({ bytes, length, positions, at }, missing, missing.length)
      for (const [n, position] of missing.entries())
        assert.equal(Buffer.compare(recovery.shard(n, length), data[position] as Uint8Array), 0, `run ${run}`)
    }
  })
}

test('the node above the data shreds is that of the tree of all 64', (t) => {
  const random = createRandom(seedOf(t))
  for (const [layout, codeLayout] of [
    [LAYOUTS.data, LAYOUTS.code],
    [LAYOUTS.resignedData, LAYOUTS.resignedCode],
  ] as const) {
    const chainedRoot = randomBytesOf(random, 32)
    const shreds = Array.from({ length: 64 }, (_, i) => {
      const shred = randomBytesOf(random, (i < 32 ? layout : codeLayout).length)
      shred.set(chainedRoot, (i < 32 ? layout : codeLayout).chainedRootAt)
      return shred
    })
    const tree = buildTree(shreds.map((shred, i) => hashLeaf(shred, i < 32 ? layout : codeLayout)))
    const expected = tree.levels.at(-1)?.[0]?.subarray(0, 20)
    const bytes = Buffer.concat(shreds.slice(0, 32))
    const at = Int32Array.from({ length: 32 }, (_, i) => i * layout.length + layout.erasureFrom)
    const length = layout.chainedRootAt - layout.erasureFrom
    assert.deepEqual(
      Buffer.from(dataNodeOf({ bytes, length, at, chainedRoot })),
      Buffer.from(expected ?? new Uint8Array()),
    )
  }
})
