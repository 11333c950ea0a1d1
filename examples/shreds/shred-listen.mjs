/**
 * Receives raw shreds on a UDP port and prints a line for each slot. One file without packages, for Node 22 or newer:
 *
 *     node shred-listen.mjs PORT [--host ADDRESS] [--slots N] [--hint-seconds N]
 *
 * With --slots it ends after so many complete slots. It sends challenge packets back, which proves the address to the operator. If no shred has
 * arrived after 35 seconds (--hint-seconds), it prints the possible causes.
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    host: { type: 'string', default: '0.0.0.0' },
    slots: { type: 'string' },
    'hint-seconds': { type: 'string', default: '35' },
  },
})
const port = Number(positionals[0])
const slotsWanted = Number(values.slots ?? Number.POSITIVE_INFINITY)
if (positionals.length !== 1 || !Number.isInteger(port) || port < 0 || port > 65_535 || !(slotsWanted > 0)) {
  console.error('usage: node shred-listen.mjs PORT [--host ADDRESS] [--slots N] [--hint-seconds N]')
  process.exit(2)
}

/** A slot has at most this many data shreds. A FEC set has 32 data and 32 coding shreds; any 32 of them are enough. */
const INDEX_MAX = 32_768
const SET_SHREDS = 32
/** Slots followed at once; the lowest is given up for a new one. */
const SLOTS_MAX = 64
const PRINTED_MAX = 1024
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
/** A destination that refused packets is probed at intervals of up to 30 s. */
const HINT = `no shreds so far. Check that
- a firewall lets UDP packets in on this port,
- your operator has set this address and port as your destination,
- the destination is verified: the challenge is sent for ten seconds after it was set. If this program did not run then,
  ask your operator for a new challenge while it runs: sluice shred verify SUBSCRIPTION`

/** Header of a shred (SIMD-0504): signature 0-63, variant 64, slot 65, index 73, version 77, FEC set 79; data shreds: flags 85. */
function readShred(packet) {
  const variant = packet[64]
  const isData = variant === 0x96 || variant === 0xb6
  const isCoding = variant === 0x66 || variant === 0x76
  if ((!isData && !isCoding) || packet.length < (isData ? 1203 : 1228)) return undefined
  const index = packet.readUInt32LE(73)
  const fecSet = packet.readUInt32LE(79)
  if (index >= INDEX_MAX || fecSet >= INDEX_MAX) return undefined
  return { slot: packet.readBigUInt64LE(65), isData, index, fecSet, isLast: isData && (packet[85] & 0xc0) === 0xc0 }
}

const open = new Map()
const totals = { packets: 0, other: 0, duplicates: 0, complete: 0, incomplete: 0 }
/** Slots that have been printed; shreds that still come for them are ignored. */
const printed = new Set()

function take(packet) {
  const shred = readShred(packet)
  if (shred === undefined) return void totals.other++
  totals.packets++
  if (printed.has(shred.slot)) return
  if (!open.has(shred.slot)) begin(shred.slot)
  const slot = open.get(shred.slot)
  const key = `${shred.isData ? 'data' : 'coding'} ${shred.index}`
  if (slot.seen.has(key)) return void totals.duplicates++
  slot.seen.add(key)
  slot[shred.isData ? 'data' : 'coding']++
  slot.sets.set(shred.fecSet, (slot.sets.get(shred.fecSet) ?? 0) + 1)
  if (shred.isLast) slot.lastIndex = shred.index
  if (isComplete(slot)) finish(shred.slot, slot, true)
}

function begin(number) {
  if (open.size >= SLOTS_MAX) {
    const lowest = [...open.keys()].reduce((a, b) => (a < b ? a : b))
    finish(lowest, open.get(lowest), false)
  }
  open.set(number, { seen: new Set(), sets: new Map(), data: 0, coding: 0, lastIndex: undefined, beganMs: Date.now() })
}

/** Whether the block can be rebuilt: the last shred is known, and every FEC set up to it has enough shreds. */
function isComplete({ lastIndex, sets }) {
  if (lastIndex === undefined) return false
  for (let first = 0; first <= lastIndex; first += SET_SHREDS) if ((sets.get(first) ?? 0) < SET_SHREDS) return false
  return true
}

function finish(number, { data, coding, beganMs }, isComplete) {
  open.delete(number)
  printed.add(number)
  if (printed.size > PRINTED_MAX) printed.delete(printed.values().next().value)
  totals[isComplete ? 'complete' : 'incomplete']++
  const state = isComplete ? `complete after ${Date.now() - beganMs} ms` : 'incomplete'
  console.log(`slot ${number} ${state}, ${data} data and ${coding} coding shreds`)
  if (totals.complete >= slotsWanted) end()
}

function end() {
  console.log(
    Object.entries(totals)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  )
  socket.close()
  process.exit(0)
}

const socket = createSocket({ type: isIPv6(values.host) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BUFFER_BYTES })
socket.on('message', (packet, from) => {
  // The operator sends this line to a new address; only a reply from that address starts the shreds.
  const isChallenge = packet.length < 64 && packet.toString('latin1').startsWith('sluice-challenge 1 ')
  if (!isChallenge) return take(packet)
  socket.send(packet, from.port, from.address)
  console.error('challenge of the operator sent back')
})
socket.on('error', (error) => {
  console.error(error.message)
  process.exit(1)
})
socket.bind(port, values.host, () => console.error(`listening on UDP port ${socket.address().port}`))
setTimeout(() => {
  if (totals.packets === 0) console.error(HINT)
}, Number(values['hint-seconds']) * 1000).unref()
process.once('SIGINT', end)
