import { Buffer } from 'node:buffer'
import { type Json, JsonText, jsonFloat } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import type { AccountToParse, ParsedState } from './parser.ts'
import { SYSVAR } from './program-ids.ts'

const PARSERS: Readonly<Record<string, { readonly type: string; readonly read: (read: ByteReader) => Json }>> = {
  [SYSVAR.clock]: { type: 'clock', read: readClock },
  [SYSVAR.epochSchedule]: {
    type: 'epochSchedule',
    read: (read) => ({
      slotsPerEpoch: read.u64(),
      leaderScheduleSlotOffset: read.u64(),
      warmup: read.bool(),
      firstNormalEpoch: read.u64(),
      firstNormalSlot: read.u64(),
    }),
  },
  [SYSVAR.fees]: { type: 'fees', read: (read) => ({ feeCalculator: readFeeCalculator(read) }) },
  [SYSVAR.recentBlockhashes]: {
    type: 'recentBlockhashes',
    read: (read) => read.list64(40, () => ({ blockhash: read.key(), feeCalculator: readFeeCalculator(read) })),
  },
  [SYSVAR.rent]: { type: 'rent', read: readRent },
  [SYSVAR.rewards]: { type: 'rewards', read: (read) => ({ validatorPointValue: jsonFloat(read.f64()) }) },
  [SYSVAR.slotHashes]: {
    type: 'slotHashes',
    read: (read) => read.list64(40, () => ({ slot: read.u64(), hash: read.key() })),
  },
  [SYSVAR.slotHistory]: { type: 'slotHistory', read: readSlotHistory },
  [SYSVAR.stakeHistory]: {
    type: 'stakeHistory',
    read: (read) =>
      read.list64(32, () => ({
        epoch: read.u64(),
        stakeHistory: { effective: read.u64(), activating: read.u64(), deactivating: read.u64() },
      })),
  },
  [SYSVAR.lastRestartSlot]: { type: 'lastRestartSlot', read: (read) => ({ lastRestartSlot: read.u64() }) },
  [SYSVAR.epochRewards]: { type: 'epochRewards', read: readEpochRewards },
}

export function parseSysvar({ address, data }: AccountToParse): ParsedState | undefined {
  const known = PARSERS[address]
  return known && { type: known.type, info: known.read(new ByteReader(data)) }
}

function readClock(read: ByteReader): Json {
  const slot = read.u64()
  const epochStartTimestamp = read.i64()
  const epoch = read.u64()
  const leaderScheduleEpoch = read.u64()
  return { slot, epoch, epochStartTimestamp, leaderScheduleEpoch, unixTimestamp: read.i64() }
}

/**
 * The account has the old layout (rate per byte and year, exemption years, burn percentage). As all accounts are rent exempt, one
 * number remains: lamports per byte for exemption.
 */
function readRent(read: ByteReader): Json {
  const lamportsPerByteYear = read.u64()
  const exemptionThreshold = read.f64()
  read.u8()
  if (!Number.isFinite(exemptionThreshold)) throw new BytesError('not a rent rate')
  return { lamportsPerByte: BigInt(Math.trunc(Number(lamportsPerByteYear) * exemptionThreshold)).toString() }
}

function readFeeCalculator(read: ByteReader): Json {
  return { lamportsPerSignature: read.u64().toString() }
}

function readEpochRewards(read: ByteReader): Json {
  return {
    distributionStartingBlockHeight: read.u64(),
    numPartitions: read.u64(),
    parentBlockhash: read.key(),
    totalPoints: read.u128().toString(),
    totalRewards: read.u64().toString(),
    distributedRewards: read.u64().toString(),
    active: read.bool(),
  }
}

/** A vector of 64-bit words behind an option tag, its length in bits, and the next slot; printed as one digit per slot. */
function readSlotHistory(read: ByteReader): Json {
  const words = read.option(() => read.bytes(read.length64(8) * 8)) ?? new Uint8Array(0)
  const bitCount = Number(read.u64())
  return { bits: new JsonText(`"${bitText(words).slice(0, bitCount)}"`), nextSlot: read.u64() }
}

/** The lowest bit first. The text of a slot history has a million digits, so its bytes are copied from a table. */
function bitText(bytes: Uint8Array): string {
  const digits = new BigUint64Array(256)
  const table = Buffer.from(digits.buffer)
  for (let byte = 0; byte < 256; byte++) {
    for (let bit = 0; bit < 8; bit++) table[byte * 8 + bit] = 0x30 + ((byte >> bit) & 1)
  }
  const text = new BigUint64Array(bytes.length)
  for (let at = 0; at < bytes.length; at++) text[at] = digits[bytes[at] as number] as bigint
  return Buffer.from(text.buffer).toString('latin1')
}

/** Unix seconds of a clock sysvar account. */
export function readClockTimestamp(data: Uint8Array): bigint {
  return new ByteReader(data, 32).i64()
}
