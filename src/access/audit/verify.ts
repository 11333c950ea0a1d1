import { type AppendFile, openAppendFile } from '../../platform/files/append.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { AccessStore, AccessView } from '../store/store.ts'
import { type Chain, inspectSurplus, type MirrorPosition } from './file.ts'
import { AUDIT_LINE_BYTES_MAX, type AuditHead, CHAIN_START, hashLine, headAfter, readLink } from './line.ts'

/** The first line that differs from what was written. */
export type AuditBreak = { readonly line: number; readonly what: string }

export type AuditReport = {
  /** Number of lines according to the head of the chain. */
  readonly lines: number
  /** `location` is the name of the store or the path of the audit file. */
  readonly findings: readonly (AuditBreak & { readonly location: string })[]
  /** Irregularities that are not faults. */
  readonly notes: readonly string[]
}

/** Checks the chain in the store against its head, and the audit file of this state folder against the chain. */
export async function verifyAudit(store: AccessStore): Promise<AuditReport> {
  const findings: (AuditBreak & { location: string })[] = []
  const notes: string[] = []
  const report = await store.read(async (view) => {
    const chain = await chainOf(view)
    const inStore = await findChainBreak(chain.lines(1), chain.head)
    if (inStore) findings.push({ location: store.name, ...inStore })
    const { file: path, remadeAt, ...recorded } = await view.auditMirror()
    if (remadeAt !== null) notes.push(`${path} was missing before line ${remadeAt} and was rewritten from the store`)
    const inFile = await verifyFile(path, recorded, chain)
    if (inFile?.finding) findings.push({ location: path, ...inFile.finding })
    if (inFile?.note) notes.push(inFile.note)
    return { lines: chain.head.seq, findings, notes }
  })
  const lost = await findLostChange(store)
  if (lost !== undefined)
    findings.push({ location: store.name, line: lost, what: 'is in the audit file but not in the store' })
  return report
}

/** Checks a chain from its start to its head; undefined when every line is unchanged. */
export async function findChainBreak(lines: AsyncIterable<string>, head: AuditHead): Promise<AuditBreak | undefined> {
  let at = CHAIN_START
  for await (const line of lines) {
    const next = at.seq + 1
    const link = readLink(line)
    if (next > head.seq) return { line: next, what: 'is beyond the head of the chain' }
    if (link === undefined) return { line: next, what: 'was changed: it cannot be read' }
    if (link.seq > next) return { line: next, what: 'is missing' }
    if (link.seq < next) return { line: next, what: `was changed: its number is ${link.seq}` }
    if (link.prev !== at.hash) {
      return at.seq === 0
        ? { line: 1, what: 'was changed: it does not begin the chain' }
        : { line: at.seq, what: 'was changed: the next line has the hash of a different one' }
    }
    at = headAfter(next, line)
  }
  if (at.seq < head.seq) return { line: at.seq + 1, what: 'is missing: the tail was cut' }
  if (at.hash !== head.hash) return { line: at.seq, what: 'was changed: the store has a different hash of it' }
  return undefined
}

/**
 * The number of a change that the audit file shows as committed and the store does not have. Looks for its line once more at the end, because another
 * process may have committed it in between.
 */
export async function findLostChange(store: AccessStore): Promise<number | undefined> {
  const lost = await store.read(async (view) => {
    const { file: path, ...recorded } = await view.auditMirror()
    await using file = await openAppendFile(path, 'read')
    if (!file) return undefined
    const surplus = await inspectSurplus(file, recorded, await chainOf(view))
    return surplus.kind === 'lost' ? surplus : undefined
  })
  if (lost === undefined) return undefined
  for await (const line of store.auditLines(lost.seq)) return hashLine(line) === lost.hash ? undefined : lost.seq
  return lost.seq
}

async function verifyFile(
  path: string,
  recorded: MirrorPosition,
  chain: Chain,
): Promise<{ finding?: AuditBreak; note?: string } | undefined> {
  await using file = await openAppendFile(path, 'read')
  if (!file) return recorded.seq === 0 ? undefined : { finding: { line: 1, what: 'is missing: the file is gone' } }
  const finding = await compareWithChain(file, recorded, chain)
  if (finding) return { finding }
  const { kind, position } = await inspectSurplus(file, recorded, chain)
  if (kind === 'foreign') return { finding: { line: position.seq + 1, what: 'was not written by the store' } }
  if (kind !== 'unfinished') return undefined
  return {
    note: `${path} ends with the line of an interrupted change that was not committed; the next change removes it`,
  }
}

/** Compares the recorded part of the file byte for byte. The newline of its last line may be missing: see `file.ts`. */
async function compareWithChain(
  file: AppendFile,
  recorded: MirrorPosition,
  chain: Chain,
): Promise<AuditBreak | undefined> {
  const found = file.lines(0, AUDIT_LINE_BYTES_MAX)
  let seq = 0
  for await (const expected of chain.lines(1)) {
    if (seq === recorded.seq) break
    seq += 1
    const next = (await found.next()).value
    if (!next) return { line: seq, what: 'is missing: the tail was cut' }
    if (Buffer.from(expected).equals(next.bytes)) continue
    const link = readLink(next.bytes)
    if (link !== undefined && link.seq > seq) return { line: seq, what: 'is missing' }
    return { line: seq, what: 'was changed: it differs from the store' }
  }
  await found.return(undefined)
  return undefined
}

async function chainOf(view: AccessView): Promise<Chain> {
  return { head: await view.auditHead(), lines: (fromSeq) => inSlices(view.auditLines(fromSeq)) }
}

/** The chain may be long: other work of the event loop runs between its lines. */
async function* inSlices(lines: AsyncIterable<string>): AsyncGenerator<string> {
  const slices = createTimeSlices()
  for await (const line of lines) {
    if (slices.isSpent()) await slices.yield()
    yield line
  }
}
