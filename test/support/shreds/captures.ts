import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { blockPackets } from './rig.ts'

/** Writes capture files for tests, from the specifications of the formats. */

const bytesOf = (length: number, write: (view: DataView) => void): Buffer => {
  const buffer = Buffer.alloc(length)
  write(new DataView(buffer.buffer, buffer.byteOffset, length))
  return buffer
}

export function udpSegment(payload: Uint8Array, toPort = 20_001): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt16BE(4000, 0)
  head.writeUInt16BE(toPort, 2)
  head.writeUInt16BE(8 + payload.length, 4)
  return Buffer.concat([head, payload])
}

export function ipv4(
  payload: Uint8Array,
  options: { protocol?: number; flags?: number; optionBytes?: number } = {},
): Buffer {
  const { protocol = 17, flags = 0x4000, optionBytes = 0 } = options
  const head = Buffer.alloc(20 + optionBytes)
  head[0] = 0x40 | ((20 + optionBytes) / 4)
  head.writeUInt16BE(head.length + payload.length, 2)
  head.writeUInt16BE(flags, 6)
  head[8] = 64
  head[9] = protocol
  return Buffer.concat([head, payload])
}

export function ipv6(payload: Uint8Array, extensions: number[] = []): Buffer {
  const head = Buffer.alloc(40)
  head[0] = 0x60
  head[6] = extensions[0] ?? 17
  const chain = extensions.map((_, at) => {
    const extension = Buffer.alloc(8 * (at + 1))
    extension[0] = extensions[at + 1] ?? 17
    extension[1] = at
    return extension
  })
  return Buffer.concat([head, ...chain, payload])
}

export function ethernet(packet: Uint8Array, tags: number[] = []): Buffer {
  const head = Buffer.alloc(12)
  const vlan = tags.map((tag) => Buffer.of(tag >> 8, tag & 255, 0, 42))
  const type = (packet[0] as number) >> 4 === 6 ? 0x86dd : 0x0800
  return Buffer.concat([head, ...vlan, Buffer.of(type >> 8, type & 255), packet])
}

/** Linux cooked captures, version 1 and 2. */
export function cooked(packet: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(14), Buffer.of(8, 0), packet])
}
export function cooked2(packet: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(8, 0), Buffer.alloc(18), packet])
}

export type Timed = { readonly frame: Uint8Array; readonly atMs: number }

export function pcapFile(
  frames: readonly Timed[],
  { link = 1, little = true, nano = false }: { link?: number; little?: boolean; nano?: boolean } = {},
): Buffer {
  const head = bytesOf(24, (view) => {
    view.setUint32(0, nano ? 0xa1b23c4d : 0xa1b2c3d4, little)
    view.setUint16(4, 2, little)
    view.setUint16(6, 4, little)
    view.setUint32(16, 262_144, little)
    view.setUint32(20, link, little)
  })
  const records = frames.flatMap(({ frame, atMs }) => [
    bytesOf(16, (view) => {
      view.setUint32(0, Math.floor(atMs / 1000), little)
      view.setUint32(4, Math.round((atMs % 1000) * (nano ? 1e6 : 1e3)), little)
      view.setUint32(8, frame.length, little)
      view.setUint32(12, frame.length, little)
    }),
    frame,
  ])
  return Buffer.concat([head, ...records])
}

export function pcapngFile(
  frames: readonly Timed[],
  { link = 1, little = true, resolution = 9 }: { link?: number; little?: boolean; resolution?: number } = {},
): Buffer {
  const block = (type: number, body: Buffer): Buffer => {
    const padded = Buffer.concat([body, Buffer.alloc((4 - (body.length % 4)) % 4)])
    const length = padded.length + 12
    return Buffer.concat([
      bytesOf(8, (view) => {
        view.setUint32(0, type, little)
        view.setUint32(4, length, little)
      }),
      padded,
      bytesOf(4, (view) => view.setUint32(0, length, little)),
    ])
  }
  const section = block(
    0x0a0d0d0a,
    bytesOf(16, (view) => {
      view.setUint32(0, 0x1a2b3c4d, little)
      view.setUint16(4, 1, little)
      view.setBigInt64(8, -1n, little)
    }),
  )
  const description = block(
    1,
    bytesOf(20, (view) => {
      view.setUint16(0, link, little)
      view.setUint32(4, 262_144, little)
      // The options: the timestamp resolution, then the end of options.
      view.setUint16(8, 9, little)
      view.setUint16(10, 1, little)
      view.setUint8(12, resolution)
    }),
  )
  const packets = frames.map(({ frame, atMs }) => {
    const ticks = BigInt(Math.round(atMs * 1000)) * 10n ** BigInt(Math.max(0, resolution - 6))
    return block(
      6,
      Buffer.concat([
        bytesOf(20, (view) => {
          view.setUint32(4, Number(ticks >> 32n), little)
          view.setUint32(8, Number(ticks & 0xffffffffn), little)
          view.setUint32(12, frame.length, little)
          view.setUint32(16, frame.length, little)
        }),
        frame,
      ]),
    )
  })
  // A block of an unknown type, between the others.
  return Buffer.concat([section, description, block(0x0bad, Buffer.alloc(12)), ...packets])
}

export function archiveFile(members: readonly Uint8Array[]): Buffer {
  const parts: Buffer[] = [Buffer.from('!<arch>\n')]
  for (const [at, member] of members.entries()) {
    const head = Buffer.alloc(60, ' ')
    head.write(`shred${at}/`, 0)
    head.write(String(member.length), 48)
    head.write('`\n', 58)
    parts.push(head, Buffer.from(member))
    if (member.length % 2 === 1) parts.push(Buffer.from('\n'))
  }
  return Buffer.concat(parts)
}

/** `shreds.pcap` with one block, for the examples of the help. */
export function makeShredCapture(folder: string): void {
  const frames = blockPackets(100).map((packet, at) => ({ frame: ethernet(ipv4(udpSegment(packet))), atMs: at }))
  writeFileSync(join(folder, 'shreds.pcap'), pcapFile(frames))
}
