import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls'
import { createManualClock } from '../../core/clock.ts'
import { isServiceError } from '../../core/error.ts'
import { until } from '../process/test-wait.ts'
import { createLogger } from '../telemetry/logger.ts'
import { type Listener, type ListenerDeps, openListener } from './listener.ts'
import { makeTestCert, type TestCert } from './test-cert.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }

/** Sends back each chunk. */
const echo = (socket: Socket) => void socket.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end())

function linesOf() {
  const lines: string[] = []
  return { lines, log: createLogger({ level: 'debug', destination: { write: (line: string) => lines.push(line) } }) }
}

async function ask(socket: Socket, text: string): Promise<string> {
  const response = new Promise<string>((resolve, reject) => {
    socket.once('data', (chunk) => resolve(String(chunk)))
    socket.once('error', reject)
  })
  socket.write(text)
  return response
}

async function tlsTo(listener: Listener, more: object = {}): Promise<TLSSocket & { peerName: string }> {
  const socket = connectTls({ port: listener.address.port, host: '127.0.0.1', rejectUnauthorized: false, ...more })
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve).once('error', reject)
  })
  const peer: PeerCertificate = socket.getPeerCertificate()
  return Object.assign(socket, { peerName: String(peer.subject.CN) })
}

const openTls = (cert: TestCert, deps: Partial<ListenerDeps> = {}) =>
  openListener(
    { ...LOOPBACK, tls: { cert: cert.cert, key: cert.key } },
    { onConnection: echo, tlsFiles: { settleMs: 20 }, ...deps },
  )

test('refuses a public address without TLS, unless plaintext is behind-proxy', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.net']) {
    await assert.rejects(openListener({ host, port: 0 }, { onConnection: echo }), (error) => {
      assert(isServiceError(error, 'plaintext-public'))
      assert.match(error.fix ?? '', /tls = .*behind-proxy/)
      return true
    })
  }
  await using open = await openListener({ host: '0.0.0.0', port: 0, plaintext: 'behind-proxy' }, { onConnection: echo })
  assert(open.address.port > 0)
  await using local = await openListener({ host: 'localhost', port: 0 }, { onConnection: echo })
  assert(!local.secure)
})

test('a port in use is an error with the command to find its owner', async () => {
  await using first = await openListener(LOOPBACK, { onConnection: echo })
  await assert.rejects(openListener(first.address, { onConnection: echo }), (error) => {
    assert(isServiceError(error, 'address-in-use'))
    assert(error.message.includes(String(first.address.port)) && error.fix?.includes(`:${first.address.port}`))
    return true
  })
})

test('refuses an address that this machine does not have', async () => {
  const options = { host: '192.0.2.1', port: 0, plaintext: 'behind-proxy' as const }
  await assert.rejects(openListener(options, { onConnection: echo }), (error) =>
    isServiceError(error, 'address-unavailable'),
  )
})

test('stopAccepting frees the port and keeps open connections; disposing destroys them', async () => {
  const listener = await openListener(LOOPBACK, { onConnection: echo })
  const socket = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  assert.equal(await ask(socket, 'a'), 'a')
  await listener.stopAccepting()
  await using again = await openListener(listener.address, { onConnection: echo })
  assert.equal(again.address.port, listener.address.port)
  assert.equal(await ask(socket, 'b'), 'b')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await listener[Symbol.asyncDispose]()
  await closed
  assert.equal(listener.connections(), 0)
  await listener.allClosed()
})

test('resets and counts connections over the limit of their address', async () => {
  const refused: string[] = []
  await using listener = await openListener(LOOPBACK, {
    onConnection: echo,
    caps: { perAddressMax: 2, isExempt: () => false },
    onRefused: (reason) => refused.push(reason),
    clock: createManualClock(),
  })
  const sockets = [1, 2].map(() => connect(listener.address.port, '127.0.0.1').on('error', () => {}))
  for (const socket of sockets) assert.equal(await ask(socket, 'x'), 'x')
  const third = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  await new Promise((resolve) => third.once('close', resolve))
  assert.deepEqual(refused, ['address-connections'])
  sockets[0]?.destroy()
  await until('one connection is left', () => listener.connections() === 1)
  const fourth = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  assert.equal(await ask(fourth, 'x'), 'x')
})

test('survives a peer that resets at once', async () => {
  await using listener = await openListener(LOOPBACK, { onConnection: () => {} })
  for (let n = 0; n < 50; n++) {
    const socket = connect(listener.address.port, '127.0.0.1').on('error', () => {})
    socket.once('connect', () => socket.resetAndDestroy())
    await new Promise((resolve) => socket.once('close', resolve))
  }
  await until('no connection is open', () => listener.connections() === 0)
})

test('accepts TLS 1.2 and later with ALPN; refuses 1.1 and plaintext', async () => {
  using cert = makeTestCert()
  const refused: string[] = []
  let notAfterMs = 0
  await using listener = await openTls(cert, {
    alpnProtocols: ['h2'],
    onRefused: (reason) => refused.push(reason),
    onNotAfter: (ms) => {
      notAfterMs = ms
    },
  })
  assert(listener.secure)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await tlsTo(listener, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2'] })
    assert.equal(socket.getProtocol(), version)
    assert.equal(socket.alpnProtocol, 'h2')
    assert.equal(await ask(socket, 'x'), 'x')
    socket.destroy()
  }
  // Security level 0 lets the client offer 1.1, so that the server refuses it.
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }
  await assert.rejects(tlsTo(listener, old))
  const plain = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  plain.end('\0 not a handshake')
  await new Promise((resolve) => plain.resume().once('close', resolve))
  await until('both refusals were counted', () => refused.length === 2)
  assert.deepEqual(refused, ['tls-handshake', 'tls-handshake'])
  assert(Math.abs(notAfterMs - Date.now() - 90 * 86_400_000) < 86_400_000)
})

test('HTTP without TLS on a TLS port gets 400 with what to do, however the request arrives; the refusal is counted', async () => {
  using cert = makeTestCert()
  const refused: string[] = []
  await using listener = await openTls(cert, { onRefused: (reason) => refused.push(reason) })
  const large = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n${'a'.repeat(1_000_000)}`
  for (const request of ['GET / HTTP/1.1\r\nhost: x\r\n\r\n', 'G', large]) {
    const client = connect(listener.address.port, '127.0.0.1')
    client.write(request)
    let text = ''
    for await (const chunk of client) text += String(chunk)
    assert.match(
      text,
      /^HTTP\/1\.1 400 Bad Request\r\n[^]*\r\ndate: [^\r]+ GMT\r\n\r\n\{"error":"tls-required","message":"this port speaks TLS/,
    )
  }
  assert.deepEqual(refused, ['tls-handshake', 'tls-handshake', 'tls-handshake'])
  await until('no connection is open', () => listener.connections() === 0)
})

test('a client of a TLS port that sends nothing is closed after the time of the handshake; one that leaves is counted', async () => {
  using cert = makeTestCert()
  const refused: string[] = []
  const clock = createManualClock()
  await using listener = await openTls(cert, { clock, onRefused: (reason) => refused.push(reason) })
  const connectSilent = async () => {
    const client = connect(listener.address.port, '127.0.0.1').on('error', () => {})
    const before = listener.connections()
    await until('it is accepted', () => listener.connections() === before + 1)
    return client
  }
  const silent = await connectSilent()
  const leaving = await connectSilent()
  leaving.destroy()
  await until('the one that left is counted', () => refused.length === 1)
  await clock.advanceAsync(4999)
  assert.equal(listener.connections(), 1)
  await clock.advanceAsync(1)
  await until('the silent one is closed', () => listener.connections() === 0)
  assert.deepEqual(refused, ['tls-handshake', 'tls-handshake'])
  silent.destroy()
})

test('a client of a TLS port that stays after the response is closed within a second', async () => {
  using cert = makeTestCert()
  const clock = createManualClock()
  await using listener = await openTls(cert, { clock, allowHalfOpen: true })
  const client = connect({ port: listener.address.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  assert.match(await ask(client, 'GET / HTTP/1.1\r\n'), /^HTTP\/1\.1 400 /)
  await clock.advanceAsync(999)
  assert.equal(listener.connections(), 1)
  await clock.advanceAsync(1)
  await until('it is closed', () => listener.connections() === 0)
  client.destroy()
})

test('serves HTTP/2 in plaintext and with TLS', async () => {
  using cert = makeTestCert()
  const server = createHttp2Server((_request, response) => void response.end('two'))
  const onConnection = (socket: Socket) => void server.emit('connection', socket)
  await using plain = await openListener(LOOPBACK, { onConnection })
  await using secure = await openTls(cert, { onConnection, alpnProtocols: ['h2'] })
  for (const [url, listener] of [
    ['http', plain],
    ['https', secure],
  ] as const) {
    const session = connectHttp2(`${url}://127.0.0.1:${listener.address.port}`, { rejectUnauthorized: false })
    const stream = session.request({ ':path': '/' })
    let text = ''
    for await (const chunk of stream) text += String(chunk)
    assert.equal(text, 'two')
    session.close()
  }
})

test('loads a renewed certificate and keeps open connections', async () => {
  using cert = makeTestCert('first')
  const { lines, log } = linesOf()
  const ends: number[] = []
  await using listener = await openTls(cert, { log, onNotAfter: (ms) => ends.push(ms) })
  const before = await Promise.all(Array.from({ length: 20 }, () => tlsTo(listener)))
  let dropped = 0
  for (const socket of before)
    socket.on('close', () => {
      dropped += 1
    })
  assert.equal(before[0]?.peerName, 'first')

  cert.renew('second', 10)
  await until('the new certificate is served', async () => {
    const socket = await tlsTo(listener)
    socket.destroy()
    return socket.peerName === 'second'
  })
  for (const socket of before) assert.equal(await ask(socket, 'still here'), 'still here')
  assert.equal(dropped, 0)
  assert.equal(ends.length, 2)
  assert(lines.some((line) => line.includes('certificate reloaded')))
  assert(
    lines.some((line) => line.includes('certificate expires soon') && line.includes('"daysLeft":10')),
    lines.join(''),
  )
  for (const socket of before) socket.destroy()
})

test('keeps the old certificate when new files do not load, and logs that once', async () => {
  using cert = makeTestCert('good')
  using other = makeTestCert('other')
  const { lines, log } = linesOf()
  const clock = createManualClock(Date.now())
  const failures: (string | undefined)[] = []
  const onNotAfter = (_: number, failure?: string) => failures.push(failure)
  await using listener = await openTls(cert, { log, clock, onNotAfter, tlsFiles: { pollMs: 1000, settleMs: 0 } })
  const served = async () => {
    const socket = await tlsTo(listener)
    socket.destroy()
    return socket.peerName
  }
  const reports = () => lines.filter((line) => line.includes('the old one stays')).length
  const pollUntil = (count: number) =>
    until(`${count} reports`, async () => {
      await clock.advanceAsync(1000)
      return reports() >= count
    })

  writeFileSync(cert.cert, readFileSync(other.cert))
  await pollUntil(1)
  assert.equal(await served(), 'good')
  assert.match(failures.at(-1) ?? '', /the key does not belong to the certificate/)
  writeFileSync(cert.cert, 'not a certificate')
  await pollUntil(2)
  writeFileSync(cert.key, readFileSync(other.key))
  chmodSync(cert.key, 0o644)
  writeFileSync(cert.cert, readFileSync(other.cert))
  await pollUntil(3)
  assert.match(lines.join(''), /chmod 600/)
  // A reload while the files were written may have read a mixture and logged that too; no more follow.
  await until('no new line is logged', async () => {
    const reported = reports()
    for (let n = 0; n < 5; n++) {
      await clock.advanceAsync(1000)
      assert.equal(await served(), 'good')
    }
    return reports() === reported
  })
  assert.ok(reports() <= 5, lines.join(''))

  chmodSync(cert.key, 0o600)
  await until('the other pair is served once its mode is right', async () => {
    await clock.advanceAsync(1000)
    return (await served()) === 'other'
  })
  assert.equal(failures.at(-1), undefined)
  writeFileSync(cert.cert, 'not a certificate')
  await until('the failure is reported', async () => {
    await clock.advanceAsync(1000)
    return failures.at(-1) !== undefined
  })
  // No read is in flight afterwards, so the next one finds the files in use again.
  for (let n = 0; n < 3; n++) assert.equal(await served(), 'other')
  writeFileSync(cert.cert, readFileSync(other.cert))
  await until('the files in use are back, so nothing fails', async () => {
    await clock.advanceAsync(1000)
    return failures.at(-1) === undefined
  })
  cert.renew('mended')
  await until('the repaired pair is served', async () => {
    await clock.advanceAsync(1000)
    return (await served()) === 'mended'
  })
})

test('refuses to start with bad TLS files and gives the reason', async () => {
  using cert = makeTestCert()
  using other = makeTestCert()
  const open = (tls: { cert: string; key: string }) => openListener({ ...LOOPBACK, tls }, { onConnection: echo })
  await assert.rejects(open({ cert: '/nowhere', key: cert.key }), (error) => isServiceError(error, 'tls-invalid'))
  await assert.rejects(open({ cert: cert.cert, key: other.key }), /does not belong to the certificate/)
  chmodSync(cert.key, 0o640)
  await assert.rejects(
    open(cert),
    (error) => isServiceError(error, 'file-mode') && error.fix === `chmod 600 ${cert.key}`,
  )
})

test('out of descriptors: the listener recovers and accepts connections again', async () => {
  const child = spawn(
    '/bin/sh',
    [
      '-c',
      `ulimit -n 64; exec "$0" --input-type=module -e "$1"`,
      process.execPath,
      `
      import { openListener } from ${JSON.stringify(new URL('./listener.ts', import.meta.url).href)}
      const open = await openListener({ host: '127.0.0.1', port: 0 }, { onConnection: (s) => s.on('data', (d) => s.write(d)) })
      console.log(open.address.port)
    `,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  try {
    const port = Number(
      await new Promise<string>((resolve) => child.stdout.once('data', (text) => resolve(String(text)))),
    )
    const sockets = Array.from({ length: 150 }, () => connect(port, '127.0.0.1').on('error', () => {}))
    await until('each connection got a response or was closed', () =>
      sockets.every((socket) => !socket.connecting || socket.destroyed),
    )
    for (const socket of sockets) socket.destroy()
    await until('it responds again', async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      const response = await Promise.race([
        ask(socket, 'x').catch(() => ''),
        new Promise((resolve) => socket.once('close', resolve)),
      ])
      socket.destroy()
      return response === 'x'
    })
    assert.equal(child.exitCode, null)
  } finally {
    child.kill('SIGKILL')
  }
})
