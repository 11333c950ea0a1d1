import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../process/test-wait.ts'
import type { QuicEnd } from './connection-options.ts'
import { openQuic } from './open-quic.ts'

/** The system refuses to connect to it without a permission, as it does to an address of IPv6 where there is no route. */
const UNREACHABLE = { ip: '255.255.255.255', port: 8009 }

function open() {
  const clock = createManualClock()
  const ends: QuicEnd[] = []
  const connection = openQuic(
    { to: UNREACHABLE, alpn: 'test', serverName: '' },
    { clock, random: createSeededRandom(1), isPeer: () => true, onEnd: (end) => ends.push(end) },
  )
  return { clock, ends, connection }
}

test('an address that the system cannot connect to ends the connection at once, not the process', async () => {
  const { connection, ends } = open()
  const outcomes: string[] = []
  assert.ok(connection.send(new Uint8Array(100), (outcome) => outcomes.push(outcome)))
  await until('it has ended', () => ends.length > 0)
  assert.deepEqual([ends[0]?.by, connection.state, outcomes], ['unreachable', 'gone', ['lost']])
  assert.match(ends[0]?.message ?? '', /connect E[A-Z]+/)
  assert.equal(connection.send(new Uint8Array(100), assert.fail), false)
})

test('a connection that is closed before its socket could not be connected ends as closed', async () => {
  const { connection, ends, clock } = open()
  connection.close()
  const later = open()
  await until('the socket of a later one could not be connected', () => later.ends.length > 0)
  clock.advance(60_000)
  assert.deepEqual([connection.state, ends.length, ends[0]?.by], ['gone', 1, 'us'])
})
