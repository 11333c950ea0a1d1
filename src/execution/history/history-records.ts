import { promisify } from 'node:util'
import { constants, deflateRaw, inflateRaw } from 'node:zlib'
import type { Hex } from '../../contract/stream-events.ts'
import type { StoredIncident } from './incidents.ts'
import type { Proposal, ProposalFigures } from './proposals.ts'

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Bytes of one record, before and after compression. A larger one counts as damage. */
export const RECORD_BYTES_MAX = 16 * 1024 * 1024

/** Records of another version are not restored. */
const VERSION = 1

export type SecondsRecord = {
  readonly isSimulated: boolean
  /** When it was written: the service ran at that time. */
  readonly nowMs: number
  readonly chainId: number | null
  readonly seconds: readonly (readonly number[])[]
  readonly incidents: readonly StoredIncident[]
}

export type StoredProposal = Omit<Proposal, 'figures'>

export type ProposalsRecord = {
  readonly isSimulated: boolean
  readonly proposals: readonly StoredProposal[]
  /** Proposals whose figures are in the body of this record. */
  readonly withFigures: readonly Hex[]
}

export function encodeSeconds({ isSimulated, nowMs, chainId, seconds, incidents }: SecondsRecord): Buffer {
  return Buffer.from(JSON.stringify({ version: VERSION, isSimulated, nowMs, chainId, seconds, incidents }))
}

export function decodeSeconds(head: Buffer): SecondsRecord | undefined {
  return parseRecord<SecondsRecord>(head)
}

export function encodeProposals({ isSimulated, proposals, withFigures }: ProposalsRecord): Buffer {
  const stored = proposals.map((proposal) => ({ ...proposal, figures: undefined }))
  return Buffer.from(JSON.stringify({ version: VERSION, isSimulated, proposals: stored, withFigures }))
}

export function decodeProposals(head: Buffer): ProposalsRecord | undefined {
  return parseRecord<ProposalsRecord>(head)
}

/** Compresses the figures on the thread pool. */
export function encodeFigures(proposals: readonly Proposal[]): Promise<Buffer> {
  const json = JSON.stringify(proposals.map(({ id, figures }) => [id, figures]))
  return deflate(json, { level: constants.Z_BEST_SPEED })
}

/** Empty where the body cannot be read. */
export async function decodeFigures(body: Buffer): Promise<readonly (readonly [Hex, ProposalFigures])[]> {
  try {
    const json = await inflate(body, { maxOutputLength: RECORD_BYTES_MAX })
    return JSON.parse(json.toString()) as [Hex, ProposalFigures][]
  } catch {
    return []
  }
}

/** The checksum of a record proves that these are the bytes that Sluice wrote; only the version can be another one. */
function parseRecord<Parsed>(head: Buffer): Parsed | undefined {
  try {
    const parsed = JSON.parse(head.toString()) as Parsed & { version?: unknown }
    return parsed.version === VERSION ? parsed : undefined
  } catch {
    return undefined
  }
}
