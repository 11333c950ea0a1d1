import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { CREDENTIAL_SOURCES, collectToken } from '../../src/access/credentials.ts'
import { isTokenText } from '../../src/access/token.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway/start.ts'
import { createRandom, isFull, seedOf } from '../support/process/property.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SAMPLES = 20_000
/** Chance alone fails one comparison in a hundred; a leak fails all of them. */
const ATTEMPTS_MAX = 4

type Ask = (token: string) => number | Promise<number>

/** T2: the time of a refusal reveals nothing about how close a guess was. */
test('T2: a token close to a valid one takes as long as any other unknown token', async (t) => {
  await using node = await startFakeNode()
  await using gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
  const { token } = await gateway.subscribe({})
  const random = createRandom(seedOf(t))

  await compare(t, 'look-up', token, random, (guess) => {
    const headers = ['Host', 'a', 'x-token', guess]
    const beganNs = process.hrtime.bigint()
    const caller = gateway.access.authenticate(collectToken(CREDENTIAL_SOURCES.rpc, headers), 'bundle', Date.now())
    const tookNs = Number(process.hrtime.bigint() - beganNs)
    assert(!caller.ok && caller.reason === 'unknown')
    return tookNs
  })
  if (!isFull) return
  await compare(t, 'request', token, random, async (guess) => {
    const beganNs = process.hrtime.bigint()
    const response = await fetch(gateway.url, { method: 'POST', body: '{}', headers: { 'x-token': guess } })
    await response.arrayBuffer()
    assert.equal(response.status, 401)
    return Number(process.hrtime.bigint() - beganNs)
  })
})

async function compare(t: TestContext, what: string, token: string, random: (below: number) => number, ask: Ask) {
  const message: string[] = []
  // Similar texts are read faster one after another, so both samples consist of similar texts.
  const stranger = unknownToken(random)
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const near: number[] = []
    const far: number[] = []
    // All created before the measurement, because creating them takes unequal time.
    const guesses = Array.from({ length: SAMPLES }, () => {
      const isNear = random(2) === 0
      return { isNear, guess: nearMiss(isNear ? token : stranger, random) }
    })
    // Alternating in random order, so that other load affects both alike.
    for (const { isNear, guess } of guesses) {
      const took = await ask(guess)
      if (isNear) near.push(took)
      else far.push(took)
    }
    const difference = Math.abs(median(near) - median(far)) / median(far)
    const p = rankSumP(near, far)
    message.push(`${what}: medians ${median(near)} and ${median(far)} ns, p ${p.toFixed(4)}`)
    if (difference < 0.01 || p > 0.01) return t.diagnostic(message.at(-1) ?? '')
  }
  assert.fail(message.join('; '))
}

function unknownToken(random: (below: number) => number): string {
  return withChecksum(`slc_${Array.from({ length: 32 }, () => ALPHABET[random(62)]).join('')}`)
}

/** The same token with other last characters and a valid checksum. */
function nearMiss(token: string, random: (below: number) => number): string {
  const body = token.slice(0, 33) + Array.from({ length: 3 }, () => ALPHABET[random(62)]).join('')
  return body === token.slice(0, 36) ? nearMiss(token, random) : withChecksum(body)
}

function withChecksum(body: string): string {
  let rest = crc32(body)
  let checksum = ''
  for (let digit = 0; digit < 6; digit++) {
    checksum = ALPHABET.charAt(rest % 62) + checksum
    rest = Math.floor(rest / 62)
  }
  assert(isTokenText(body + checksum))
  // A flat string as from a socket: a concatenated one is flattened at its first read.
  return Buffer.from(body + checksum).toString('latin1')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** Two-sided p of the rank-sum test (Mann, Whitney 1947), by its normal approximation; ties count half. */
function rankSumP(a: readonly number[], b: readonly number[]): number {
  const all = [...a.map((value) => ({ value, isA: true })), ...b.map((value) => ({ value, isA: false }))]
  all.sort((one, other) => one.value - other.value)
  let ranks = 0
  for (let from = 0; from < all.length; ) {
    let to = from
    while (to < all.length && all[to]?.value === all[from]?.value) to += 1
    const rank = (from + to + 1) / 2
    for (let at = from; at < to; at++) if (all[at]?.isA === true) ranks += rank
    from = to
  }
  const u = ranks - (a.length * (a.length + 1)) / 2
  const mean = (a.length * b.length) / 2
  const deviation = Math.sqrt((a.length * b.length * (a.length + b.length + 1)) / 12)
  return 2 * (1 - normal(Math.abs(u - mean) / deviation))
}

/** The normal distribution's share below z (Abramowitz and Stegun 26.2.17). */
function normal(z: number): number {
  const t = 1 / (1 + 0.2316419 * z)
  const poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return 1 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * poly
}
