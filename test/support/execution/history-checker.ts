/**
 * Checks the frames that one client received: numbers increase strictly, there are no duplicates, every missing frame was reported as a
 * gap, and every frame equals the published one byte for byte.
 */

/** A frame published for the client's subscription, in order. Warnings of the source have number 0 in their text. */
export type Published = {
  /** The order in the stream, also of a Warning, whose text has no number. */
  readonly seq: number
  readonly text: string
}

/** All frames of one connection as text, beginning with Hello. */
export type Connection = {
  readonly texts: readonly string[]
  /** The cursor of the resume request, if any. */
  readonly resumeFrom?: string | undefined
  /** True when every frame published before its end must have arrived: it kept up, and no frame was in flight. */
  readonly isComplete?: boolean
}

export type Verdict = {
  readonly violations: readonly string[]
  /** The last number received: the client's resume cursor. */
  readonly cursor: number | undefined
  readonly isResumed: boolean
  readonly reportedGaps: readonly { from: number; to: number }[]
}

type Frame = {
  seq: number
  Hello?: { resumed: boolean; newest_seqno: number; snapshot: number }
  Subscribed?: { snapshot: number }
  Warning?: { type: string; from_seq?: number; to_seq?: number }
  Error?: unknown
}

/** Checks a connection whose subscription stayed the same. */
export function checkConnection(connection: Connection, published: readonly Published[]): Verdict {
  const violations: string[] = []
  const report = (what: string): void => void violations.push(what)
  const reportedGaps: { from: number; to: number }[] = []
  const frames = connection.texts.map((text) => ({ text, frame: JSON.parse(text) as Frame }))
  const hello = frames[0]?.frame.Hello
  if (hello === undefined) {
    if (frames.length > 0) report(`the first frame is not Hello: ${frames[0]?.text.slice(0, 80)}`)
    return { violations, cursor: undefined, isResumed: false, reportedGaps }
  }
  if (frames.slice(1).some(({ frame }) => frame.Hello !== undefined)) report('a second Hello was received')
  if (hello.resumed && connection.resumeFrom === undefined) report('resumed without a request')
  if (hello.resumed && hello.snapshot > 0) report('resumed with a snapshot')
  if (!hello.resumed && connection.resumeFrom !== undefined && !isOutOfWindowReported(frames.map(({ frame }) => frame)))
    report('a cursor was ignored without a report')

  const start = hello.resumed ? startOf(connection.resumeFrom as string, hello.newest_seqno) : hello.newest_seqno
  const expected = published.filter(({ seq }) => seq > start)
  let snapshotLeft = hello.snapshot
  let at = 0
  let last = start
  let cursor: number | undefined = hello.resumed ? start : hello.newest_seqno
  const isReported = (seq: number): boolean => reportedGaps.some(({ from, to }) => seq >= from && seq <= to)
  for (const { text, frame } of frames.slice(1)) {
    if (frame.Error !== undefined) continue
    if (frame.Warning?.type === 'resume_out_of_window') continue
    if (frame.Warning?.type === 'backpressure') {
      const { from_seq: from = 0, to_seq: to = 0 } = frame.Warning
      if (from > to || from <= last) report(`a gap from ${from} to ${to} is reported after ${last}`)
      reportedGaps.push({ from, to })
      continue
    }
    if (snapshotLeft > 0 && frame.Warning === undefined) {
      snapshotLeft -= 1
      if (frame.seq !== hello.newest_seqno && frame.seq !== 0) report(`a snapshot frame has number ${frame.seq}`)
      continue
    }
    // Dropped frames are in a range that was reported before.
    while (at < expected.length && (expected[at] as Published).text !== text) {
      const missing = expected[at] as Published
      if (!isReported(missing.seq)) {
        report(`${missing.seq} is missing without a gap report; received instead ${text.slice(0, 80)}`)
        return { violations, cursor, isResumed: hello.resumed, reportedGaps }
      }
      at += 1
    }
    if (at === expected.length) {
      report(`received but not published after ${start}, or received twice: ${text.slice(0, 80)}`)
      break
    }
    if (isReported((expected[at] as Published).seq))
      report(`${frame.seq} was received although it was reported as dropped`)
    at += 1
    if (frame.seq !== 0) {
      if (frame.seq <= last) report(`${frame.seq} received after ${last}`)
      last = frame.seq
      cursor = frame.seq
    }
  }
  if (snapshotLeft > 0 && connection.isComplete === true) report(`${snapshotLeft} snapshot frames are missing`)
  if (connection.isComplete === true) {
    const missing = expected.slice(at).filter(({ seq }) => !isReported(seq))
    if (missing.length > 0) report(`${missing.length} frames are missing, the first is ${missing[0]?.seq}`)
  }
  return { violations, cursor, isResumed: hello.resumed, reportedGaps }
}

/** Zero is the cursor of a client without frames; it is valid only where nothing was published. */
function startOf(resumeFrom: string, newestSeqno: number): number {
  return resumeFrom === '0' ? newestSeqno : Number(resumeFrom)
}

/** Directly after Hello, if any frame follows Hello. */
function isOutOfWindowReported(frames: readonly Frame[]): boolean {
  const next = frames[1]
  return next === undefined || next.Warning?.type === 'resume_out_of_window' || next.Error !== undefined
}

/** Reads text messages from the bytes a server writes to its socket, in chunks of any size. */
export function createFrameReader(): { push(bytes: Uint8Array): string[] } {
  let rest: Buffer = Buffer.alloc(0)
  return {
    push(bytes) {
      rest = Buffer.concat([rest, bytes])
      const texts: string[] = []
      for (;;) {
        if (rest.length < 2) return texts
        const short = (rest[1] as number) & 0x7f
        const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10
        if (rest.length < headBytes) return texts
        const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
        if (rest.length < headBytes + length) return texts
        if (rest[0] === 0x81) texts.push(rest.toString('utf8', headBytes, headBytes + length))
        rest = rest.subarray(headBytes + length)
      }
    },
  }
}
