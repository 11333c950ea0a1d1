import assert from 'node:assert/strict'
import type { Child, ChildExit } from '../../platform/process/child.ts'
import type { EngineReply, EngineRequest, FromEngine, ToEngine } from './protocol.ts'

/** Called once, in the order of `send`; `engine-down` when this request killed the engine, or when the engine does not start. */
export type EngineResponse = (reply: EngineReply | 'engine-down') => void

export type EngineJob = {
  readonly request: EngineRequest
  readonly done: EngineResponse
  /** How many engines died while they had it. */
  deaths: number
  /** State rather than work: the next engine gets it anyway by its refill. */
  readonly isFill: boolean
}

/** One engine process, and the requests that it has not replied to. */
export class EngineInstance implements AsyncDisposable {
  readonly exited: Promise<ChildExit>
  readonly #child: Child
  readonly #inFlight = new Map<number, EngineJob>()
  #lastSeq = 0
  #working = 0

  constructor(child: Child, onReplies: () => void) {
    this.#child = child
    this.exited = child.exited
    child.onMessage((batch) => {
      this.#handle(batch as FromEngine)
      onReplies()
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Requests in flight, without those that only fill it. */
  get working(): number {
    return this.#working
  }

  /** Sends the jobs in one message. */
  post(jobs: readonly EngineJob[]): void {
    const batch: ToEngine = jobs.map((job) => {
      this.#inFlight.set(++this.#lastSeq, job)
      if (!job.isFill) this.#working++
      return { seq: this.#lastSeq, request: job.request }
    })
    this.#child.send(batch)
  }

  /** Resolves when the engine has replied to all, or has died. */
  async fill(requests: Iterable<EngineRequest>): Promise<EngineReply[]> {
    const replies = [...requests].map((request) => {
      const { promise, resolve } = Promise.withResolvers<EngineReply | 'engine-down'>()
      // One message each: a fill may be large, and the engine processes one while the next is in transit.
      this.post([{ request, done: resolve, deaths: 0, isFill: true }])
      return promise
    })
    return (await Promise.all(replies)).filter((reply) => reply !== 'engine-down')
  }

  /** The jobs without a reply, in the order of `post`. The process has exited, so none of them took effect. */
  takeInFlight(): EngineJob[] {
    const jobs = [...this.#inFlight.values()]
    this.#inFlight.clear()
    this.#working = 0
    return jobs
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]()
  }

  #handle(batch: FromEngine): void {
    for (const { seq, reply } of batch) {
      const job = this.#inFlight.get(seq)
      assert(job, 'the engine replied to a request that it was not sent')
      this.#inFlight.delete(seq)
      if (!job.isFill) this.#working--
      job.done(reply)
    }
  }
}
