import { WebSocket } from 'ws'
import { checkConnection, type Published } from '../support/execution/history-checker.ts'
import { type Client, pause, type SoakContext } from './client.ts'

/** All frames that one uninterrupted client of the default subscription received in this epoch: the reference for the others. */
export type StreamTruth = AsyncDisposable & { readonly epoch: number; readonly published: readonly Published[] }

type Frame = { seq: number; Hello?: { snapshot: number }; Warning?: object }

export async function startStreamTruth({
  service,
  count,
}: Pick<SoakContext, 'service' | 'count'>): Promise<StreamTruth> {
  const published: Published[] = []
  const socket = new WebSocket(`ws://${service.at.execution}/`, { perMessageDeflate: false })
  socket.on('error', () => {})
  let snapshotLeft: number | undefined
  let seq = 0
  const isReady = new Promise<void>((resolve, reject) => {
    socket.on('close', () => reject(new Error('the stream closed before Hello')))
    socket.on('message', (data: Buffer) => {
      const text = data.toString()
      const frame = JSON.parse(text) as Frame
      if (snapshotLeft === undefined) {
        snapshotLeft = frame.Hello?.snapshot ?? 0
        return resolve()
      }
      if (snapshotLeft > 0) {
        snapshotLeft -= 1
        return
      }
      // Warnings of the source have no number; they are ordered after the last numbered frame.
      if (frame.seq > 0) seq = frame.seq
      count('stream frames')
      published.push({ seq: frame.seq > 0 ? seq : seq + 0.5, text })
    })
  })
  await isReady
  return {
    epoch: service.epoch,
    published,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => {
        if (socket.readyState === WebSocket.CLOSED) resolve()
        else socket.on('close', () => resolve())
      })
      socket.terminate()
      await closed
    },
  }
}

/** Follows the execution stream, disconnects, resumes with its cursor, and must receive the same frames as the uninterrupted client. */
export function createStreamFollower(truth: () => StreamTruth | undefined): Client {
  return async (context) => {
    const { service, random, isOver, count } = context
    let cursor: { readonly seq: number; readonly epoch: number } | undefined
    while (!isOver()) {
      const { epoch } = service
      const resumeFrom = cursor?.epoch === epoch ? String(cursor.seq) : undefined
      const texts = await followOnce(context, resumeFrom)
      const known = truth()
      // The service was restarted meanwhile, or the uninterrupted client is not connected yet.
      if (known === undefined || known.epoch !== epoch || service.epoch !== epoch || texts.length === 0) {
        cursor = undefined
        await pause(500 + random(1000))
        continue
      }
      const first = known.published[0]?.seq ?? Number.POSITIVE_INFINITY
      const seq = (JSON.parse(texts[0] as string) as { Hello?: { newest_seqno: number } }).Hello?.newest_seqno ?? 0
      if (resumeFrom !== undefined || seq >= first) {
        const verdict = checkConnection({ texts, resumeFrom }, known.published)
        for (const violation of verdict.violations) context.reportViolation(`stream: ${violation}`)
        count(verdict.isResumed ? 'streams resumed' : 'streams started')
        count('stream gaps reported', verdict.reportedGaps.length)
        cursor = verdict.cursor === undefined ? undefined : { seq: verdict.cursor, epoch }
      } else cursor = undefined
      await pause(random(12_000))
    }
  }
}

async function followOnce({ service, random, isOver }: SoakContext, resumeFrom: string | undefined): Promise<string[]> {
  const texts: string[] = []
  const query = resumeFrom === undefined ? '' : `?resume_from=${resumeFrom}`
  const socket = new WebSocket(`ws://${service.at.execution}/${query}`, { perMessageDeflate: false })
  const ended = new Promise<void>((resolve) => void socket.on('close', () => resolve()))
  socket.on('error', () => {})
  socket.on('message', (data: Buffer) => void texts.push(data.toString()))
  const endMs = performance.now() + 1000 + random(20_000)
  while (performance.now() < endMs && !isOver() && socket.readyState !== WebSocket.CLOSED) {
    if (random(30) === 0) {
      socket.pause()
      await pause(random(3000))
      socket.resume()
    }
    await pause(200)
  }
  socket.terminate()
  await ended
  return texts
}
