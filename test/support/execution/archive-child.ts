import { createManualClock } from '../../../src/core/clock.ts'
import { BlockArchive } from '../../../src/execution/archive/archive.ts'
import { HeldBlock } from '../../../src/execution/rpc/held-block.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { ethBlock } from './eth-blocks.ts'

/** Archives blocks without end, and reports the number of each one that is written. Its parent kills it. */
const [folder = '', before = '0'] = process.argv.slice(2)
const archive = await BlockArchive.open(
  { folder, blocksMax: 10_000, bytesMax: 2 ** 30 },
  { log: silentLogger, clock: createManualClock() },
)
for (let number = Number(before) + 1; process.connected; number++) {
  const { block } = ethBlock({ number, txns: 3, logsPerTxn: 1 })
  archive.add(block, new HeldBlock(block, number))
  await archive.flushed()
  process.send?.(number)
}
