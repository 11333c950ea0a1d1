import {
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type KeyObject,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { CryptoStream } from './crypto-stream.ts'
import { writeAck, writeCrypto } from './frames.ts'
import { expandLabel, hkdfExtract, initialSecrets, nextSecret, PacketKeys, retryTag, type Secret } from './keys.ts'
import { type Level, openPacket, readPacketHeads, VERSION_1, writePacket } from './packet.ts'
import { ReceivedPackets } from './received-packets.ts'
import { LEVELS } from './recovery.ts'
import { finishedData } from './tls-client.ts'
import { signedContent, writeCertificate, writeCertificateVerify, writeFinished } from './tls-messages.ts'
import { ByteReader, ByteWriter } from './wire.ts'

export type TestServerOptions = {
  readonly der: Uint8Array
  readonly privateKey: KeyObject
  readonly streamsMax: number
  /** The window of a stream. More than that ends in `seen`. */
  readonly streamDataMax?: number
  readonly wantsCertificate?: boolean
  readonly sendsRetry?: boolean
}

/**
 * For tests: a minimal server with the client's codecs and simple retransmission. It sends and receives through functions, so that the test controls
 * network and time.
 */
export class TestServer {
  readonly #options: TestServerOptions
  readonly #clock: Clock
  readonly #send: (datagram: Uint8Array) => void
  readonly #id = Uint8Array.of(0x5e, 0x4e, 0x4e, 0x4e, 0x4e, 0x4e, 0x4e, 1)
  readonly resetToken = new Uint8Array(16).fill(0xab)
  #original: Uint8Array | undefined
  #initialDestination: Uint8Array = new Uint8Array(0)
  #retryId: Uint8Array | undefined
  #clientId: Uint8Array = new Uint8Array(0)
  #keys: Partial<Record<Level, { send: PacketKeys; receive: [PacketKeys, PacketKeys?] }>> = {}
  #secrets: { client: Secret; server: Secret } | undefined
  #phase: 0 | 1 = 0
  #next: Record<Level, number> = { initial: 0, handshake: 0, application: 0 }
  #acked: Record<Level, number> = { initial: -1, handshake: -1, application: -1 }
  #received = { initial: new ReceivedPackets(), handshake: new ReceivedPackets(), application: new ReceivedPackets() }
  #crypto = { initial: new CryptoStream(), handshake: new CryptoStream(), application: new CryptoStream() }
  #offset: Record<Level, number> = { initial: 0, handshake: 0, application: 0 }
  #waiting: { level: Level; frame: Uint8Array; numbers: number[]; sentAtMs: number }[] = []
  #transcript: Uint8Array[] = []
  #hello: { client: Secret; server: Secret; master: Secret } | undefined
  readonly streams = new Map<number, { bytes: Uint8Array; have: Set<number>; end: number | undefined }>()
  readonly seen: string[] = []
  clientCertificate: Uint8Array | undefined
  isDone = false
  #timer: Disposable

  constructor(options: TestServerOptions, deps: { clock: Clock; send(datagram: Uint8Array): void }) {
    this.#options = options
    this.#clock = deps.clock
    this.#send = deps.send
    this.#timer = deps.clock.setRepeating(100, () => this.#repeat())
  }

  stop(): void {
    this.#timer[Symbol.dispose]()
  }

  /** Complete streams, as text of their first bytes. */
  get whole(): number {
    return [...this.streams.values()].filter(({ end, have }) => end !== undefined && have.size === end).length
  }

  frame(write: (to: ByteWriter) => unknown, level: Level = 'application'): void {
    const to = new ByteWriter(1000)
    write(to)
    this.#waiting.push({ level, frame: to.written, numbers: [], sentAtMs: Number.NEGATIVE_INFINITY })
    this.#repeat()
  }

  /** Starts a key update. */
  updateKeys(): void {
    if (this.#secrets === undefined) return
    this.#turn()
    this.frame((to) => to.u8(0x01))
  }

  #turn(): void {
    const pair = this.#keys.application
    const secrets = this.#secrets
    if (pair === undefined || secrets === undefined) return
    this.#secrets = { client: nextSecret(secrets.client), server: nextSecret(secrets.server) }
    pair.send = pair.send.updated(this.#secrets.server)
    const other = this.#phase === 0 ? 1 : 0
    pair.receive[other] = (pair.receive[this.#phase] as PacketKeys).updated(this.#secrets.client)
    this.#phase = other
  }

  receive(datagram: Uint8Array): void {
    if (this.#original === undefined && !this.#begin(datagram)) return
    for (const own of [this.#id, this.#initialDestination]) {
      for (const head of readPacketHeads(datagram, own)) {
        if (head.kind !== 'protected') continue
        const pair = this.#keys[head.level]
        if (pair === undefined) continue
        const opened = openPacket(datagram, head, {
          headerKeys: pair.receive[0],
          keysFor: (phase) => (head.level === 'application' ? pair.receive[phase] : pair.receive[0]),
          largest: this.#received[head.level].largest,
        })
        if (opened === undefined || !this.#received[head.level].add(opened.packetNumber, 0)) continue
        if (this.#onFrames(head.level, opened.payload)) this.#ack(head.level)
      }
    }
    this.#repeat()
  }

  /** Handles the first Initial packet, or responds with a Retry. */
  #begin(datagram: Uint8Array): boolean {
    const read = new ByteReader(datagram)
    const first = read.u8()
    if ((first & 0xf0) !== 0xc0 || read.u32() !== VERSION_1) return false
    const destination = Uint8Array.from(read.take(read.u8()))
    this.#clientId = Uint8Array.from(read.take(read.u8()))
    const token = read.take(read.varint())
    if (this.#options.sendsRetry === true && token.length === 0) {
      this.#retryId ??= Uint8Array.of(9, 9, 9, 9, 9, 9, 9, 9)
      this.#initialDestination = destination
      const packet = new ByteWriter(100).u8(0xf0).u32(VERSION_1).u8(this.#clientId.length).put(this.#clientId)
      packet.u8(8).put(this.#retryId).put(Buffer.from('a token'))
      packet.put(retryTag(destination, packet.written))
      this.#send(packet.written)
      return false
    }
    this.#original = this.#retryId === undefined ? destination : this.#initialDestination
    this.#initialDestination = destination
    const { client, server } = initialSecrets(destination)
    this.#keys.initial = { send: new PacketKeys(server), receive: [new PacketKeys(client)] }
    return true
  }

  /** True when an acknowledgement is due. */
  #onFrames(level: Level, payload: Uint8Array): boolean {
    const read = new ByteReader(payload)
    let wantsAck = false
    while (read.left > 0) {
      const type = read.varint()
      if (type !== 0 && type !== 2 && type !== 0x1c && type !== 0x1d) wantsAck = true
      if (type >= 0x08 && type <= 0x0f) this.#onStream(read, type)
      else if (type === 0x02) this.#onAck(level, read)
      else if (type === 0x06) {
        const offset = read.varint()
        for (const { message } of this.#crypto[level].receive(offset, read.take(read.varint())))
          this.#onMessage(Uint8Array.from(message))
      } else if (type === 0x1c || type === 0x1d) {
        this.seen.push(`close ${read.varint()}`)
        return false
      } else if (type === 0x04) this.seen.push(`reset ${read.varint()} ${read.varint()} ${read.varint()}`)
      else if (type === 0x19) this.seen.push(`retired ${read.varint()}`)
      else if (type === 0x1b) this.seen.push(`path ${Buffer.from(read.take(8)).toString('hex')}`)
      else if (type === 0x14 || type === 0x17)
        this.seen.push(`blocked ${type === 0x14 ? 'data' : 'streams'} ${read.varint()}`)
      else if (type === 0x15) this.seen.push(`blocked stream ${read.varint()} ${read.varint()}`)
    }
    return wantsAck
  }

  #onStream(read: ByteReader, type: number): void {
    const id = read.varint()
    const offset = (type & 4) === 0 ? 0 : read.varint()
    const data = read.take((type & 2) === 0 ? read.left : read.varint())
    const stream = this.streams.get(id) ?? { bytes: new Uint8Array(5000), have: new Set<number>(), end: undefined }
    this.streams.set(id, stream)
    stream.bytes.set(data, offset)
    for (let at = offset; at < offset + data.length; at++) stream.have.add(at)
    if ((type & 1) !== 0) stream.end = offset + data.length
    if (offset + data.length > this.#streamDataMax) this.seen.push(`bad size of stream ${id}`)
  }

  get #streamDataMax(): number {
    return this.#options.streamDataMax ?? 4096
  }

  #onAck(level: Level, read: ByteReader): void {
    let to = read.varint()
    read.varint()
    const more = read.varint()
    let from = to - read.varint()
    this.#acked[level] = Math.max(this.#acked[level], to)
    for (let left = more; ; left--) {
      const isIn = (number: number) => number >= from && number <= to
      this.#waiting = this.#waiting.filter((one) => one.level !== level || !one.numbers.some(isIn))
      if (left === 0) return
      to = from - read.varint() - 2
      from = to - read.varint()
    }
  }

  #onMessage(message: Uint8Array): void {
    const before = this.#hash()
    this.#transcript.push(message)
    if (message[0] === 1) this.#respondToHello(message)
    else if (message[0] === 11) {
      const read = new ByteReader(message, { from: 4 })
      read.take(read.u8())
      const list = read.part(read.u24())
      if (list.left > 0) this.clientCertificate = Uint8Array.from(list.take(list.u24()))
    } else if (message[0] === 15) {
      const key = new X509Certificate(this.clientCertificate as Uint8Array).publicKey
      if (!verify(null, signedContent('client', before), key, message.subarray(8)))
        this.seen.push('bad client signature')
    } else if (message[0] === 20) {
      const good = Buffer.compare(message.subarray(4), finishedData(this.#hello?.client ?? before, before)) === 0
      this.isDone = good
      if (!good) return void this.seen.push('bad finished')
      this.frame((to) => to.u8(0x1e))
      if (this.#options.streamsMax > 0) this.frame((to) => to.u8(0x13).varint(this.#options.streamsMax))
    }
  }

  #hash(): Buffer {
    return createHash('sha256').update(Buffer.concat(this.#transcript)).digest()
  }

  #respondToHello(message: Uint8Array): void {
    const at = Buffer.from(message).indexOf(Buffer.from('003300260024001d0020', 'hex'))
    const share = message.subarray(at + 10, at + 42)
    const secret = Buffer.concat([Buffer.from('302e020100300506032b656e04220420', 'hex'), Buffer.alloc(32, 7)])
    const privateKey = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' })
    const spki = Buffer.concat([Buffer.from('302a300506032b656e032100', 'hex'), share])
    const shared = diffieHellman({ privateKey, publicKey: createPublicKey({ key: spki, format: 'der', type: 'spki' }) })
    const own = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)
    const hello = new ByteWriter(200).u16(0x0303).put(Buffer.alloc(32, 8)).u8(0).u16(0x1301).u8(0)
    hello.u16(46).u16(43).u16(2).u16(0x0304).u16(51).u16(36).u16(0x001d).u16(32).put(own)
    this.#report('initial', 2, hello.written)
    const zeros = new Uint8Array(32)
    const derive = (from: Secret, label: string, context: Uint8Array) => expandLabel(from, label, context, 32)
    const empty = createHash('sha256').digest()
    const handshake = hkdfExtract(derive(hkdfExtract(zeros, zeros), 'derived', empty), shared)
    const hash = this.#hash()
    const client = derive(handshake, 'c hs traffic', hash)
    const server = derive(handshake, 's hs traffic', hash)
    this.#keys.handshake = { send: new PacketKeys(server), receive: [new PacketKeys(client)] }
    const master = hkdfExtract(derive(handshake, 'derived', empty), zeros)
    this.#hello = { client, server, master }

    const parameters = this.#parameters()
    const extensions = new ByteWriter(300)
      .u16(4 + 13 + 4 + parameters.length)
      .u16(16)
      .u16(13)
      .u16(11)
      .u8(10)
    this.#report(
      'handshake',
      8,
      extensions.put(Buffer.from('solana-tpu')).u16(57).u16(parameters.length).put(parameters).written,
    )
    if (this.#options.wantsCertificate !== false)
      this.#report('handshake', 13, Uint8Array.of(0, 0, 8, 0, 13, 0, 4, 0, 2, 8, 7))
    this.#reportWhole('handshake', writeCertificate(new Uint8Array(0), this.#options.der))
    this.#reportWhole(
      'handshake',
      writeCertificateVerify(sign(null, signedContent('server', this.#hash()), this.#options.privateKey)),
    )
    this.#reportWhole('handshake', writeFinished(finishedData(server, this.#hash())))
    const secrets = {
      client: derive(master, 'c ap traffic', this.#hash()),
      server: derive(master, 's ap traffic', this.#hash()),
    }
    this.#secrets = secrets
    this.#keys.application = { send: new PacketKeys(secrets.server), receive: [new PacketKeys(secrets.client)] }
  }

  #parameters(): Uint8Array {
    const to = new ByteWriter(200)
    const opaque = (id: number, value: Uint8Array) => to.varint(id).varint(value.length).put(value)
    opaque(0x00, this.#original as Uint8Array)
    opaque(0x0f, this.#id)
    if (this.#retryId !== undefined) opaque(0x10, this.#retryId)
    opaque(0x02, this.resetToken)
    to.varint(0x04).varint(4).varint(0x100000).varint(0x07).varint(2).varint(this.#streamDataMax)
    return to.written
  }

  #report(level: Level, type: number, body: Uint8Array): void {
    this.#reportWhole(level, Uint8Array.of(type, 0, body.length >> 8, body.length & 255, ...body))
  }

  #reportWhole(level: Level, message: Uint8Array): void {
    this.#transcript.push(message)
    for (let at = 0; at < message.length; at += 900) {
      const data = message.subarray(at, at + 900)
      const to = new ByteWriter(1000)
      writeCrypto(to, this.#offset[level], data)
      this.#offset[level] += data.length
      this.#waiting.push({ level, frame: to.written, numbers: [], sentAtMs: Number.NEGATIVE_INFINITY })
    }
  }

  /** Resends everything that is not acknowledged for a while. */
  #repeat(): void {
    const nowMs = this.#clock.monotonicMs()
    for (const level of LEVELS) {
      for (const one of this.#waiting.filter((waiting) => waiting.level === level && nowMs - waiting.sentAtMs >= 100)) {
        one.sentAtMs = nowMs
        one.numbers.push(this.#next[level])
        this.#write(level, one.frame)
      }
    }
  }

  #ack(level: Level): void {
    const to = new ByteWriter(600)
    if (writeAck(to, this.#received[level].ranges, 0)) this.#write(level, to.written)
  }

  #write(level: Level, payload: Uint8Array): void {
    const keys = this.#keys[level]?.send
    if (keys === undefined) return
    const packetNumber = this.#next[level]++
    const common = {
      level,
      packetNumber,
      largestAcked: this.#acked[level],
      destination: this.#clientId,
      source: this.#id,
    }
    this.#send(
      writePacket(
        {
          ...common,
          token: new Uint8Array(0),
          keyPhase: this.#phase,
          payload,
          sizeMin: level === 'initial' ? 1200 : 0,
        },
        keys,
      ),
    )
  }
}
