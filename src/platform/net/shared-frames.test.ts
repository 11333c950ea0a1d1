import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type FrameConsumer, SharedFrames, type SharedPart } from './shared-frames.ts'

class Consumer implements FrameConsumer<Buffer> {
  readonly got: string[] = []
  offers = 0
  #part: SharedPart<Buffer> | undefined

  offer(part: SharedPart<Buffer>): void {
    this.seal()
    this.offers += 1
    this.#part = part
  }

  seal(): void {
    const part = this.#part
    this.#part = undefined
    const taken = part?.take(this)
    if (taken === undefined) return
    assert.equal(taken.joined.toString(), taken.frames.join(''))
    this.got.push(...taken.frames.map(String))
  }
}

const create = () => new SharedFrames<Buffer>((frame) => frame)

describe('shared frames', () => {
  it('offers the first new frame to a consumer that has taken all, and later frames with it', () => {
    const shared = create()
    const consumer = new Consumer()
    shared.append(Buffer.from('before'))
    shared.join(consumer)
    for (const text of ['a', 'b', 'c']) shared.append(Buffer.from(text))
    assert.equal(consumer.offers, 1)
    consumer.seal()
    assert.deepEqual(consumer.got, ['a', 'b', 'c'])
    shared.append(Buffer.from('d'))
    assert.equal(consumer.offers, 2)
    shared.leave(consumer)
    shared.append(Buffer.from('e'))
    assert.deepEqual(consumer.got, ['a', 'b', 'c', 'd'])
  })

  it('joins frames once for all consumers of a part', () => {
    const shared = create()
    const joined: Buffer[] = []
    const consumers: FrameConsumer<Buffer>[] = []
    for (let at = 0; at < 3; at++) {
      let part: SharedPart<Buffer> | undefined
      const consumer: FrameConsumer<Buffer> = {
        offer(given) {
          part = given
        },
        seal() {
          if (part !== undefined) joined.push(part.take(consumer).joined)
        },
      }
      shared.join(consumer)
      consumers.push(consumer)
    }
    shared.append(Buffer.from('x'))
    shared.append(Buffer.from('y'))
    for (const receiver of consumers) receiver.seal()
    assert.equal(joined.length, 3)
    assert(joined.every((bytes) => bytes === joined[0]))
  })

  it('offers a new run to consumers that do not take, every so many frames or bytes', () => {
    for (const frame of [Buffer.from('x'), Buffer.alloc(40_000)]) {
      const shared = create()
      const idle = new Consumer()
      shared.join(idle)
      const before = idle.offers
      for (let at = 0; at < 1000; at++) shared.append(frame)
      assert(idle.offers - before >= 1000 / 128, `${idle.offers} offers`)
      shared.leave(idle)
      assert.equal(idle.got.length, 1000)
    }
  })

  it('delivers each frame between join and leave once and in order, whenever consumers take', () => {
    const step = fc.record({ kind: fc.constantFrom('append', 'append', 'take', 'come', 'leave'), who: fc.nat(5) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const shared = create()
        const present = new Map<number, { consumer: Consumer; from: number }>()
        let made = 0
        const leave = (who: number): void => {
          const one = present.get(who)
          if (one === undefined) return
          shared.leave(one.consumer)
          present.delete(who)
          assert.deepEqual(
            one.consumer.got,
            Array.from({ length: made - one.from }, (_, at) => String(one.from + at)),
          )
        }
        for (const { kind, who } of steps) {
          if (kind === 'append') shared.append(Buffer.from(String(made++)))
          else if (kind === 'take') present.get(who)?.consumer.seal()
          else if (kind === 'leave') leave(who)
          else if (!present.has(who)) {
            const consumer = new Consumer()
            shared.join(consumer)
            present.set(who, { consumer, from: made })
          }
        }
        for (const who of [...present.keys()]) leave(who)
        assert.equal(shared.size, 0)
      }),
      { numRuns: 300 },
    )
  })
})
