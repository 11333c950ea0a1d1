import assert from 'node:assert/strict'
import { fstatSync } from 'node:fs'
import { test } from 'node:test'
import { systemClock } from '../process/clock.ts'
import { closeDescriptors, createDescriptorMemory, openDescriptorList } from './descriptor-list.ts'
import { openUdpPort } from './open-port.ts'

const OPTIONS = {
  listen: { host: '127.0.0.1', port: 0 },
  sources: ['127.0.0.1'],
  receiveBufferBytes: 1024 * 1024,
  sendBufferBytes: 1024 * 1024,
  engine: 'sendmmsg',
} as const

const listed = (memory: SharedArrayBuffer): number[] => {
  const isOpen = new Uint8Array(memory)
  const found: number[] = []
  for (let fd = isOpen.indexOf(1); fd >= 0; fd = isOpen.indexOf(1, fd + 1)) found.push(fd)
  return found
}

test('a port lists its sockets while they are open, and what was not closed can be closed by the list', async () => {
  const memory = createDescriptorMemory()
  const deps = { clock: systemClock, descriptors: openDescriptorList(memory) }
  const { port } = await openUdpPort(OPTIONS, deps)
  const to = { ip: '127.0.0.1', port: 9 }
  port.connect(to).close()
  assert.equal(listed(memory).length, 1)
  port.connect(to)
  assert.equal(listed(memory).length, 2)

  // The port and its destination are not closed.
  const listen = { host: port.address.host, port: port.address.port }
  await assert.rejects(openUdpPort({ ...OPTIONS, listen }, deps), { code: 'address-in-use' })
  const left = listed(memory)
  assert.equal(left.length, 2, 'a port that could not be opened is not listed')
  closeDescriptors(memory)
  for (const fd of left) assert.throws(() => fstatSync(fd), { code: 'EBADF' })

  const { port: next } = await openUdpPort({ ...OPTIONS, listen }, deps)
  assert.equal(listed(memory).length, 1)
  next[Symbol.dispose]()
  assert.deepEqual(listed(memory), [])
})
