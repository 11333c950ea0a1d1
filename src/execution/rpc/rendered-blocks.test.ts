import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ethBlock } from '../../../test/support/execution/eth-blocks.ts'
import { finish } from '../../core/work.ts'
import { HeldBlock } from './held-block.ts'
import { RenderedBlocks } from './rendered-blocks.ts'
import { ResponseText } from './response-text.ts'
import { countingMeter } from './test-rpc.ts'

test('caches texts by last use, within the limit, and none larger than a quarter of it', () => {
  const held = [1, 2, 3, 4, 5].map(
    (number) => new HeldBlock(ethBlock({ number, txns: 10, logsPerTxn: 1 }).block, number),
  )
  const work = (rendered: RenderedBlocks, at: number): { bytes: number; made: number } => {
    let made = 0
    const out = new ResponseText({ bytesMax: 2 ** 24, onBytes: (bytes) => void (made += bytes) })
    const block = held[at] as HeldBlock
    const handle = {
      number: block.number,
      id: block.id,
      hash: block.hash,
      bloom: undefined,
      txnCount: 10,
      *load() {
        yield
        return block
      },
    }
    finish(rendered.writeReceipts(handle, { out, meter: countingMeter() }))
    return { bytes: out.take().bytes, made }
  }
  const { bytes } = work(new RenderedBlocks({ bytesMax: 2 ** 24 }), 0)
  const rendered = new RenderedBlocks({ bytesMax: bytes * 4 + 100 })
  for (const at of [0, 1, 2, 3]) assert.equal(work(rendered, at).made, bytes, 'made')
  // Ready text counts an eighth.
  for (const at of [0, 1, 2, 3]) assert.equal(work(rendered, at).made, bytes / 8, 'kept')
  work(rendered, 4)
  assert(rendered.bytes <= bytes * 4 + 100)
  assert.equal(work(rendered, 1).made, bytes / 8, 'used later than the first')
  assert.equal(work(rendered, 0).made, bytes, 'the one used longest ago made room')
  const small = new RenderedBlocks({ bytesMax: bytes * 3 })
  work(small, 0)
  assert.equal(small.bytes, 0)
})
