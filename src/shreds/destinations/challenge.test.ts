import assert from 'node:assert/strict'
import { test } from 'node:test'
import { challengeCodeOf } from '../../access/provisioning/destinations.ts'
import type { Destination } from '../../access/store/model.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { challengePacket, createChallenger, readChallenge } from './challenge.ts'

const KEY = new Uint8Array(32).fill(1)
const SET_AT = 1_800_000_000_000
const DESTINATION: Destination = {
  id: 'sub_1/pending',
  revision: 1,
  ip: '1.2.3.4',
  port: 20_001,
  proof: 'unproven',
  paused: false,
  setAt: SET_AT,
}
const ADDRESS = { ip: '1.2.3.4', port: 20_001 }

function start(prove = async (_id: string, _code: string) => {}) {
  const sent: { packet: Uint8Array; ip: string; port: number }[] = []
  const proven: string[] = []
  const challenger = createChallenger({
    log: silentLogger,
    key: KEY,
    send: (packet, { ip, port }) => void sent.push({ packet, ip, port }),
    async prove(id, code) {
      proven.push(`${id} ${code}`)
      await prove(id, code)
    },
    onSent() {},
  })
  challenger.setChallenges([{ subscriptionId: 'sub_1', destination: DESTINATION }])
  return { challenger, sent, proven, code: challengeCodeOf(KEY, DESTINATION) }
}

test('sends three packets of less than 64 bytes to an unproven address, five seconds apart, and no more', () => {
  const { challenger, sent } = start()
  const at: number[] = []
  for (let ms = -2000; ms < 900_000; ms += 500) {
    const before = sent.length
    challenger.tick(SET_AT + ms)
    if (sent.length > before) at.push(ms)
  }
  assert.deepEqual(at, [0, 5000, 10_000])
  assert.ok(sent.every(({ packet, ip, port }) => packet.length <= 64 && ip === ADDRESS.ip && port === ADDRESS.port))
  assert.ok(sent.reduce((sum, { packet }) => sum + packet.length, 0) <= 3 * 64)
})

test('sends only the remaining packets when the process starts later', () => {
  const { challenger, sent } = start()
  challenger.tick(SET_AT + 7000)
  challenger.tick(SET_AT + 12_000)
  challenger.tick(SET_AT + 20_000)
  assert.equal(sent.length, 2)
})

test('only the destination itself, with the code of its own challenge, proves it, and only once', async () => {
  const { challenger, proven, code } = start()
  const packet = challengePacket(code)
  challenger.receive(packet, { ip: '9.9.9.9', port: ADDRESS.port })
  challenger.receive(packet, { ip: ADDRESS.ip, port: 20_002 })
  challenger.receive(challengePacket('0'.repeat(32)), ADDRESS)
  challenger.receive(packet.subarray(1), ADDRESS)
  challenger.receive(new Uint8Array(1203), ADDRESS)
  challenger.receive(new Uint8Array(), ADDRESS)
  assert.deepEqual(proven, [])
  challenger.receive(packet, ADDRESS)
  challenger.receive(packet, ADDRESS)
  assert.deepEqual(proven, [`sub_1 ${code}`])
})

test('a proof that could not be stored can be repeated, an echo for a closed challenge is ignored', async () => {
  let fails = true
  const { challenger, proven, code } = start(async () => {
    if (fails) throw new Error('the store is locked')
  })
  challenger.receive(challengePacket(code), ADDRESS)
  await new Promise((resolve) => setImmediate(resolve))
  fails = false
  challenger.receive(challengePacket(code), ADDRESS)
  assert.equal(proven.length, 2)
  challenger.setChallenges([])
  challenger.receive(challengePacket(code), ADDRESS)
  assert.equal(proven.length, 2)
})

test('the code depends on the key and on every field of the challenge', () => {
  const code = challengeCodeOf(KEY, DESTINATION)
  assert.match(code, /^[0-9a-f]{32}$/)
  const others = [
    challengeCodeOf(new Uint8Array(32).fill(2), DESTINATION),
    challengeCodeOf(KEY, { ...DESTINATION, id: 'sub_2/pending' }),
    challengeCodeOf(KEY, { ...DESTINATION, ip: '1.2.3.5' }),
    challengeCodeOf(KEY, { ...DESTINATION, port: 20_002 }),
    challengeCodeOf(KEY, { ...DESTINATION, setAt: SET_AT + 1 }),
  ]
  assert.equal(new Set([code, ...others]).size, 6)
  assert.equal(readChallenge(challengePacket(code)), code)
  assert.equal(readChallenge(Buffer.from(`sluice-challenge 1 ${code}`)), code)
  assert.equal(readChallenge(Buffer.from(`sluice-challenge 2 ${code}`)), undefined)
})

test('the echo of an address that is stored in another spelling proves it', () => {
  const { challenger, proven } = start()
  const destination = { ...DESTINATION, ip: '2A00:0:0::5' }
  challenger.setChallenges([{ subscriptionId: 'sub_1', destination }])
  const code = challengeCodeOf(KEY, destination)
  challenger.receive(challengePacket(code), { ip: '2a00::6', port: destination.port })
  challenger.receive(challengePacket(code), { ip: '2a00::5', port: destination.port })
  assert.deepEqual(proven, [`sub_1 ${code}`])
})

test('the code of a challenge is computed once, not at every decision', () => {
  const { challenger } = start()
  let reads = 0
  const destination: Destination = {
    ...DESTINATION,
    get id() {
      reads += 1
      return 'sub_2/pending'
    },
  }
  for (let times = 0; times < 10; times++) challenger.setChallenges([{ subscriptionId: 'sub_2', destination }])
  assert.equal(reads, 1)
})
