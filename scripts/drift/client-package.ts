import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createProtocol, type Protocol, readProtoText } from './proto-text.ts'

/** Files read of one package, and bytes of one file: a package is not trusted to be small. */
const FILES_MAX = 20_000
const FILE_BYTES_MAX = 8 * 1024 * 1024

/**
 * The protocol that an unpacked client package declares. Of the Geyser messages it reads the best source that the package has: .proto files,
 * the encoders that ts-proto generates, or the names in type declarations. JSON-RPC methods are those of the `…Api` types.
 */
export function readClientPackage(folder: string): Protocol {
  const protocol = createProtocol()
  const files = filesOf(folder)
  const texts = (ends: string) => files.filter((file) => file.endsWith(ends)).map((file) => readFileSync(file, 'utf8'))
  for (const text of texts('.proto')) if (GEYSER_PACKAGES.test(text)) readProtoText(text, protocol)
  if (protocol.messages.size === 0) for (const text of texts('.js')) readEncoders(text, protocol)
  const declarations = texts('.d.ts')
  if (protocol.messages.size === 0) for (const text of declarations) readInterfaces(text, protocol)
  for (const text of declarations) readApiTypes(text, protocol)
  return protocol
}

const GEYSER_PACKAGES = /^\s*package (?:geyser|solana\.storage\.\w+)\s*;/m
const GENERATED = /protobufPackage = ["'](?:geyser|solana\.storage\.\w+)["']/

function filesOf(folder: string): string[] {
  const files: string[] = []
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const file = join(folder, name)
    const stat = statSync(file)
    if (!stat.isFile() || stat.size > FILE_BYTES_MAX) continue
    files.push(file)
    if (files.length >= FILES_MAX) break
  }
  return files
}

/** `export const X = { encode(message, …) { … message.name … writer.uint32(tag) …`, where the tag is the number times eight plus the type. */
function readEncoders(text: string, into: Protocol): void {
  if (!GENERATED.test(text)) return
  for (const [, path = ''] of text.matchAll(/path: ["']\/geyser\.(Geyser\/\w{1,64})["']/g)) into.rpcs.add(path)
  for (const part of text.split(/^(?:export const |exports\.)(?=\w+ = \{$)/m).slice(1)) {
    const name = /^\w+/.exec(part)?.[0] ?? ''
    const encode = part.indexOf('    encode(')
    const decode = part.indexOf('    decode(')
    if (isMapEntry(name) || encode === -1 || decode < encode) continue
    into.messages.add(name)
    let field: string | undefined
    /** The tag of a packed list comes before the name of its field. */
    let packed: number | undefined
    for (const [, member, tag, fork] of part.slice(encode, decode).matchAll(ENCODED)) {
      field = member ?? field
      if (tag !== undefined && fork !== undefined) packed = Number(tag)
      const at = member === undefined ? Number(tag) : packed
      if (field === undefined || at === undefined || fork !== undefined) continue
      into.fields.set(`${name}.${snakeCase(field)}`, at >>> 3)
      packed = undefined
    }
  }
}

const ENCODED = /message\.(\w{1,80})|writer\.uint32\((\d{1,10})\)(\.fork\(\);)?/g

/** `export interface X { name: …; other?: … }`, and enums with their numbers. */
function readInterfaces(text: string, into: Protocol): void {
  if (!GENERATED.test(text) && !text.includes('interface SubscribeRequest ')) return
  for (const [, kind, name = '', body = ''] of text.matchAll(
    /^export (?:declare )?(interface|(?:const )?enum) (\w{1,80}) \{\n([\s\S]*?)^\}/gm,
  )) {
    if (isMapEntry(name)) continue
    if (kind === 'interface') {
      into.messages.add(name)
      for (const [, field = ''] of body.matchAll(/^(?: {4}| {2})([a-z]\w{0,80})\??:/gm))
        into.fields.set(`${name}.${snakeCase(field)}`, undefined)
    } else {
      for (const [, value = '', number] of body.matchAll(/^\s+(\w{1,80}) = (\d{1,10}),?$/gm))
        into.enumValues.set(`${name}.${value}`, Number(number))
    }
  }
}

/** `export type GetSlotApi = { getSlot(…): …; }`; a method `slotNotifications` is the subscription kind `slot`. */
function readApiTypes(text: string, into: Protocol): void {
  for (const [, body = ''] of text.matchAll(/^export (?:declare )?type \w{1,80}Api = \{\n([\s\S]*?)^\}/gm)) {
    for (const [, name = ''] of body.matchAll(/^ {4}([a-z]\w{0,80})[(<]/gm)) {
      const kind = /^(\w+)Notifications$/.exec(name)?.[1]
      if (kind === undefined) into.methods.add(name)
      else into.subscriptions.add(kind)
    }
  }
}

function isMapEntry(name: string): boolean {
  return /_\w+Entry$/.test(name)
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
