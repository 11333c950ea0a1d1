import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'
import { PROBE_EVERY_MS, PROBES } from '../../src/shreds/destinations/challenge.ts'
import { isFull } from '../support/process/property.ts'
import { blockPackets, openSink, startRig } from '../support/shreds/rig.ts'

const CHALLENGE_BYTES_MAX = 64
/** Limit of RFC 9000 (section 8) for addresses that are not validated. */
const AMPLIFICATION_MAX = 3

test('T16: an unproven address gets three small challenges and no shred, whatever it sends', async (t) => {
  using proven = await openSink()
  using silent = await openSink()
  using loud = await openSink()
  // The first challenge is due at once; in the short form the second a moment later, and the test does not wait for the third.
  const setAt = Date.now() - (isFull ? 0 : PROBE_EVERY_MS - 1000)
  await using rig = await startRig(
    {},
    {
      setUp({ put, putPending }) {
        put('proven', { port: proven.port })
        put('silent', { port: silent.port, proof: 'unproven', setAt })
        putPending('silent', { port: silent.port, setAt })
        put('loud', { port: loud.port, proof: 'unproven', setAt })
        putPending('loud', { port: loud.port, setAt })
      },
    },
  )
  const wanted = isFull ? PROBES : 2
  let sentByLoud = 0
  let slot = 100
  const report = (bytes: Buffer) => {
    sentByLoud += bytes.length
    loud.socket.send(bytes, rig.shreds.address.port, '127.0.0.1')
  }
  await until(
    'the challenges arrived, and shreds at the proven address',
    async () => {
      await rig.send(blockPackets(slot++))
      // Invalid replies: noise, a shred, and the challenge with a byte changed.
      for (const bytes of [
        Buffer.alloc(40, 7),
        Buffer.from(blockPackets(slot)[0] ?? []),
        ...loud.packets.slice(0, 1),
      ]) {
        const changed = Buffer.from(bytes)
        changed[changed.length - 2] = (changed[changed.length - 2] ?? 0) ^ 1
        report(changed)
      }
      await pause(20)
      return [silent, loud].every(({ packets }) => packets.length >= wanted) && proven.packets.length > 500
    },
    60_000,
  )
  if (isFull) await pause(2 * PROBE_EVERY_MS)
  const bytesTo = (packets: readonly Buffer[]) => packets.reduce((sum, { length }) => sum + length, 0)
  t.diagnostic(
    `${bytesTo(silent.packets)} bytes to the silent one, ${bytesTo(loud.packets)} for ${sentByLoud} of the loud one`,
  )
  for (const { packets } of [silent, loud]) {
    assert.ok(packets.length <= PROBES && packets.every(({ length }) => length <= CHALLENGE_BYTES_MAX))
    assert.ok(packets.every((packet) => packet.toString('latin1').startsWith('sluice-challenge ')))
    assert.ok(bytesTo(packets) <= PROBES * CHALLENGE_BYTES_MAX)
  }
  assert.ok(bytesTo(loud.packets) <= AMPLIFICATION_MAX * sentByLoud)
  assert.deepEqual(rig.proven, [])
})
