import type { z } from 'zod'
import { integer, section } from '../../contract/option-fields.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

const MIB = 1024 * 1024

/** ShredStream Decoded: limits of the engine and of the memory before and behind it. */
export const decodedOptions = section(
  'ShredStream Decoded (preview): transactions from shreds, before they are executed.',
  {
    slotsMax: integer(2, 4096)
      .default(128)
      .describe('Slots open at once; beyond it the oldest one is closed and what it lacks is reported as lost.'),
    slotsBehindMax: integer(1, 4096)
      .default(32)
      .describe(
        'A slot this far behind the newest one is closed; it counts where it is more than a packet may be ahead (window.aheadMs, in slots of 200 ms).',
      ),
    silentSlotsMax: integer(1, 4096)
      .default(8)
      .describe(
        'A slot without a new shred for so many slot lengths is closed, and what it lacks is reported as lost.',
      ),
    bytesMax: integer(64 * FEC_SET_BYTES, 4096 * MIB)
      .default(128 * MIB)
      .describe('Memory for shreds of incomplete data sets; at the limit the oldest slot is closed.'),
    inputShreds: integer(256, 1_048_576)
      .default(16_384)
      .describe('Shreds that wait for the engine; the relay never waits: further ones are not decoded, and counted.'),
    outputBytes: integer(1 * MIB, 1024 * MIB)
      .default(64 * MIB)
      .describe(
        'Decoded data kept for readers; a reader that falls further behind is informed how much it has lost. Large data sets are delivered in parts of up to 256 KiB; a part larger than a quarter of this value (decodedDataSetBytes), which only a value close to the minimum causes, is reported as lost.',
      ),
    lookupTablesMax: integer(16, 100_000)
      .default(4096)
      .describe(
        'Address lookup tables kept; a transaction with an unknown one is delivered without its loaded addresses.',
      ),
    merge: section("Merging with nodes' own SubscribeDeshred: nodes with `decoded = true` in `upstreams.nodes`.", {
      slotsMax: integer(8, 4096)
        .default(128)
        .describe(
          'Slots behind the newest one whose transactions are remembered, so that each comes once (decodedMergeSlots).',
        ),
      bytesMax: integer(1 * MIB, 4096 * MIB)
        .default(32 * MIB)
        .describe('Memory for them; at the limit nothing of a node is taken for the oldest slots any more.'),
      queueBytes: integer(1 * MIB, 1024 * MIB)
        .default(8 * MIB)
        .describe('What waits for the engine of what nodes send; beyond it the oldest is lost, and counted.'),
    }),
  },
)

export type DecodedOptions = z.output<typeof decodedOptions>
