import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import type { FilterIndex, IndexedFilters } from './filter-index.ts'
import { compileFilters } from './filters.ts'
import type { DeshredRequest } from './request.ts'
import type { DecodedStream } from './stream.ts'

/** A request up to this size, about 700 accounts, is applied at once. */
const AT_ONCE_BYTES_MAX = 32 * 1024
/** As many accounts are also removed at once. */
const AT_ONCE_ACCOUNTS_MAX = 1000

type Steps = Generator<void, void>

/**
 * Replaces the filters of streams. A large request is compiled and indexed in slices, one request after another; until it is complete, the stream keeps
 * its former filters. The newest request of a stream counts.
 */
export class FilterUpdates {
  readonly #index: FilterIndex<DecodedStream>
  readonly #slices: TimeSlices
  /** The newest update of each stream. */
  readonly #newest = new WeakMap<DecodedStream, Steps>()
  #queue: Promise<void> = Promise.resolve()

  constructor(index: FilterIndex<DecodedStream>, slices: TimeSlices) {
    this.#index = index
    this.#slices = slices
  }

  apply(stream: DecodedStream, request: DeshredRequest): void {
    const steps = this.#applyInSteps(stream, request)
    this.#newest.set(stream, steps)
    if (request.message.length <= AT_ONCE_BYTES_MAX) return runAll(steps)
    this.#enqueue(steps, () => !stream.isOver && this.#newest.get(stream) === steps)
  }

  /** The stream has ended. */
  end(stream: DecodedStream): void {
    if (stream.filters !== undefined) this.#remove(stream.filters)
    stream.filters = undefined
  }

  *#applyInSteps(stream: DecodedStream, request: DeshredRequest): Steps {
    const compiled = yield* compileFilters(request)
    if (!compiled.ok) return stream.finish({ code: GrpcCode.invalidArgument, message: compiled.message })
    const { transactions, slots } = compiled.filters
    const filters = this.#index.create(stream, transactions)
    let isAdded = false
    try {
      yield* this.#index.add(filters)
      isAdded = true
    } finally {
      if (!isAdded) this.#remove(filters)
    }
    const before = stream.filters
    stream.filters = filters
    stream.slots = slots
    this.#index.setActive(filters, true)
    if (before !== undefined) this.#remove(before)
  }

  #remove(filters: IndexedFilters<DecodedStream>): void {
    this.#index.setActive(filters, false)
    const steps = this.#index.remove(filters)
    const accounts = filters.entries.reduce((sum, { filter }) => sum + filter.include.size, 0)
    if (accounts <= AT_ONCE_ACCOUNTS_MAX) runAll(steps)
    else this.#enqueue(steps, () => true)
  }

  #enqueue(steps: Steps, isNeeded: () => boolean): void {
    this.#queue = this.#queue.then(async () => {
      // Not in the turn in which the request was checked.
      await this.#slices.yield()
      while (isNeeded()) {
        if (steps.next().done === true) return
        if (this.#slices.isSpent()) await this.#slices.yield()
      }
      steps.return()
    })
  }
}

function runAll(steps: Steps): void {
  while (steps.next().done !== true);
}
