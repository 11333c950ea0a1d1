/**
 * Says whether what one client received is what it should have received: numbers grow strictly, nothing comes twice, nothing is missing
 * that was not told, and every frame is, byte for byte, the one that was published.
 */

/** What was published for the client's subscription, in order. Warnings of the source have number 0 in their text. */
export type Published = {
  /** The place in the stream; also of a Warning, whose text does not show it. */
  readonly seq: number
  readonly text: string
}

/** Everything one connection received, as text, from Hello on. */
export type Connection = {
  readonly texts: readonly string[]
  /** The cursor it came with, if it asked to resume. */
  readonly resumeFrom?: string | undefined
  /** True when all that was published before it ended must have arrived: it kept up, and was looked at when all was quiet. */
  readonly isComplete?: boolean
}

export type Verdict = {
  readonly objections: readonly string[]
  /** The last number received: where this client would resume. */
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
  const objections: string[] = []
  const object = (what: string): void => void objections.push(what)
  const reportedGaps: { from: number; to: number }[] = []
  const frames = connection.texts.map((text) => ({ text, frame: JSON.parse(text) as Frame }))
  const hello = frames[0]?.frame.Hello
  if (hello === undefined) {
    if (frames.length > 0) object(`the first frame is not Hello: ${frames[0]?.text.slice(0, 80)}`)
    return { objections, cursor: undefined, isResumed: false, reportedGaps }
  }
  if (frames.slice(1).some(({ frame }) => frame.Hello !== undefined)) object('there is a second Hello')
  if (hello.resumed && connection.resumeFrom === undefined) object('resumed without having asked')
  if (hello.resumed && hello.snapshot > 0) object('resumed with a snapshot')
  if (!hello.resumed && connection.resumeFrom !== undefined && !isOutOfWindowReported(frames.map(({ frame }) => frame)))
    object('a cursor was not used and nothing said so')

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
      if (from > to || from <= last) object(`a gap from ${from} to ${to} is told after ${last}`)
      reportedGaps.push({ from, to })
      continue
    }
    if (snapshotLeft > 0 && frame.Warning === undefined) {
      snapshotLeft -= 1
      if (frame.seq !== hello.newest_seqno && frame.seq !== 0) object(`a snapshot frame has number ${frame.seq}`)
      continue
    }
    // What was dropped lies in a range that was told just before.
    while (at < expected.length && (expected[at] as Published).text !== text) {
      const missing = expected[at] as Published
      if (!isReported(missing.seq)) {
        object(`${missing.seq} is missing without a word; instead came ${text.slice(0, 80)}`)
        return { objections, cursor, isResumed: hello.resumed, reportedGaps }
      }
      at += 1
    }
    if (at === expected.length) {
      object(`came but was not published after ${start}, or came twice: ${text.slice(0, 80)}`)
      break
    }
    if (isReported((expected[at] as Published).seq)) object(`${frame.seq} came although it was told to be dropped`)
    at += 1
    if (frame.seq !== 0) {
      if (frame.seq <= last) object(`${frame.seq} comes after ${last}`)
      last = frame.seq
      cursor = frame.seq
    }
  }
  if (snapshotLeft > 0 && connection.isComplete === true) object(`${snapshotLeft} snapshot frames did not come`)
  if (connection.isComplete === true) {
    const missing = expected.slice(at).filter(({ seq }) => !isReported(seq))
    if (missing.length > 0) object(`${missing.length} frames never came, the first is ${missing[0]?.seq}`)
  }
  return { objections, cursor, isResumed: hello.resumed, reportedGaps }
}

/** Zero is the cursor of a client that saw nothing; it is good only where there is nothing to miss. */
function startOf(resumeFrom: string, newestSeqno: number): number {
  return resumeFrom === '0' ? newestSeqno : Number(resumeFrom)
}

/** Right after Hello, if anything came after Hello at all. */
function isOutOfWindowReported(frames: readonly Frame[]): boolean {
  const next = frames[1]
  return next === undefined || next.Warning?.type === 'resume_out_of_window' || next.Error !== undefined
}

/** Text messages out of what a server wrote to its socket; they may come in any pieces. */
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
