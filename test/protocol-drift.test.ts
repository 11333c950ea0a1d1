import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { readClientPackage } from '../scripts/drift/client-package.ts'
import { type Drift, findDrift, printDrift, readOwnProtocol } from '../scripts/protocol-drift.ts'
import { makeTestFolder } from '../src/platform/files/test-folder.ts'

const OWN_PROTO = readFileSync(join(import.meta.dirname, '../proto/geyser.proto'), 'utf8')
const SCRIPT = join(import.meta.dirname, '../scripts/protocol-drift.ts')

/** A newer geyser.proto than ours: a field, a filter kind, a renumbered field, an update kind, an enum value and a method. */
const NEWER_PROTO = `syntax = "proto3";
package geyser; // not: package other;
option go_package = "x = 5;";
service Geyser {
  rpc Subscribe(stream SubscribeRequest) returns (stream SubscribeUpdate) {}
  rpc SubscribeAuctions(stream SubscribeRequest) returns (stream SubscribeUpdate) { option deprecated = true; }
}
enum SlotStatus { SLOT_PROCESSED = 0; SLOT_REPLACED = 7; }
message SubscribeRequest {
  reserved 20, 21;
  map<string, SubscribeRequestFilterSlots> slots = 2;
  /* a kind of filter: map<string, X> nothing = 9; */
  map<string, SubscribeRequestFilterAuctions> auctions = 13 [deprecated = false];
  optional uint64 from_slot = 14;
}
message SubscribeRequestFilterAuctions { repeated string account = 1; }
message SubscribeRequestFilterSlots { optional bool filter_by_commitment = 1; message Inner { bool deep = 1; } }
message SubscribeUpdate {
  oneof update_oneof { SubscribeUpdateSlot slot = 3; SubscribeRequestFilterAuctions auction = 50; }
}
`

/** As ts-proto generates it. */
const NEWER_ENCODERS = `export const protobufPackage = "geyser";
export const SubscribeRequest = {
    encode(message, writer = _m0.Writer.create()) {
        Object.entries(message.blocksMeta).forEach(([key, value]) => {
            SubscribeRequest_BlocksMetaEntry.encode({ key: key, value }, writer.uint32(42).fork()).ldelim();
        });
        if (message.fromSlot !== undefined) {
            writer.uint32(88).uint64(message.fromSlot);
        }
        if (message.untilSlot !== undefined) {
            writer.uint32(104).uint64(message.untilSlot);
        }
        return writer;
    },
    decode(input, length) {
        message.never = 1; writer.uint32(800);
    },
};
export const SubscribeRequest_BlocksMetaEntry = {
    encode(message, writer = _m0.Writer.create()) {
        writer.uint32(10).string(message.key);
    },
    decode(input, length) {},
};
export const TransactionStatusMeta = {
    encode(message, writer = _m0.Writer.create()) {
        if (message.fee !== "0") {
            writer.uint32(16).uint64(message.fee);
        }
        writer.uint32(26).fork();
        for (const v of message.preBalances) {
            writer.uint64(v);
        }
        writer.ldelim();
        writer.uint32(802).fork();
        for (const v of message.auctionBids) {
            writer.uint64(v);
        }
        writer.ldelim();
        return writer;
    },
    decode(input, length) {},
};
export const GeyserService = {
    subscribe: { path: "/geyser.Geyser/Subscribe" },
    subscribeAuctions: { path: "/geyser.Geyser/SubscribeAuctions" },
};
`

const NEWER_INTERFACES = `export declare const protobufPackage = "geyser";
export declare enum CommitmentLevel {
    PROCESSED = 0,
    AUCTIONED = 3,
    UNRECOGNIZED = -1
}
export interface SubscribeRequest {
    slots: {
        [key: string]: SubscribeRequestFilterSlots;
    };
    fromSlot?: string | undefined;
    untilSlot?: string | undefined;
}
`

const NEWER_API = `export type GetSlotApi = {
    /**
     * getNothing(
     */
    getSlot(config?: Config): Slot;
};
export type GetAuctionApi = {
    getAuction<T>(config: T): Auction;
    getAuction(config?: never): Auction;
};
type NotExported = {
    getPrivate(): void;
};
export type AuctionNotificationsApi = {
    auctionNotifications(): Auction;
    slotNotifications(): Slot;
};
`

function writePackage(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

function driftOf(folder: string): string[] {
  return findDrift(readOwnProtocol(), readClientPackage(folder)).map(rowOf)
}
const rowOf = ({ what, name, number, here }: Drift) => [what, name, number ?? '-', here ?? 'missing'].join(' ')

describe('drift of the protocol', () => {
  test('finds new fields, kinds, methods and numbers in .proto files', () => {
    using folder = makeTestFolder()
    writePackage(folder.path, {
      'proto/geyser.proto': NEWER_PROTO,
      'proto/other.proto': 'package other; message Foreign {}',
    })
    assert.deepEqual(driftOf(folder.path), [
      'rpc Geyser/SubscribeAuctions - missing',
      'message SubscribeRequestFilterAuctions - missing',
      'message SubscribeRequestFilterSlots_Inner - missing',
      'field SubscribeRequest.auctions 13 missing',
      'field SubscribeRequest.from_slot 14 11',
      'field SubscribeUpdate.auction 50 missing',
      'enum value SlotStatus.SLOT_REPLACED 7 missing',
    ])
  })

  test('reads generated encoders where a package has no .proto file', () => {
    using folder = makeTestFolder()
    writePackage(folder.path, { 'dist/geyser.js': NEWER_ENCODERS, 'dist/geyser.d.ts': NEWER_INTERFACES })
    assert.deepEqual(driftOf(folder.path), [
      'rpc Geyser/SubscribeAuctions - missing',
      'field SubscribeRequest.until_slot 13 missing',
      'field TransactionStatusMeta.auction_bids 100 missing',
    ])
  })

  test('reads names of type declarations where a package has nothing else', () => {
    using folder = makeTestFolder()
    writePackage(folder.path, { 'index.d.ts': NEWER_INTERFACES })
    assert.deepEqual(driftOf(folder.path), [
      'field SubscribeRequest.until_slot - missing',
      'enum value CommitmentLevel.AUCTIONED 3 missing',
    ])
  })

  test('finds new JSON-RPC methods and subscriptions', () => {
    using folder = makeTestFolder()
    writePackage(folder.path, { 'dist/api.d.ts': NEWER_API })
    assert.deepEqual(driftOf(folder.path), ['method getAuction - missing', 'subscription auction - missing'])
  })

  test('finds nothing in our own protocol', () => {
    using folder = makeTestFolder()
    writePackage(folder.path, { 'geyser.proto': OWN_PROTO })
    assert.ok(readClientPackage(folder.path).fields.size > 100)
    assert.deepEqual(driftOf(folder.path), [])
    assert.equal(printDrift([{ package: 'own@1.0.0', items: 3, drift: [] }]), 'own@1.0.0: 3 declarations, 0 new')
  })
})

describe('npm run drift, with a registry', () => {
  test('prints a table and exits with 1 on drift, with 0 without', async () => {
    using folder = makeTestFolder()
    await using registry = await startRegistry(folder, {
      'newer-client': { 'package.json': '{"name":"newer-client","version":"9.1.0"}', 'geyser.proto': NEWER_PROTO },
      '@made/same-client': {
        'package.json': '{"name":"@made/same-client","version":"2.0.0"}',
        'geyser.proto': OWN_PROTO,
      },
      'empty-client': { 'package.json': '{"name":"empty-client","version":"1.0.0"}' },
    })
    const same = await runScript(folder, registry.url, ['@made/same-client'])
    assert.deepEqual([same.code, same.stdout.includes('@made/same-client@2.0.0:')], [0, true], same.stderr)
    const newer = await runScript(folder, registry.url, ['@made/same-client', 'newer-client'])
    assert.equal(newer.code, 1, newer.stderr)
    assert.match(newer.stdout, /^PACKAGE +WHAT +NAME +NUMBER +HERE\n/)
    assert.match(newer.stdout, /^newer-client@9\.1\.0 +field +SubscribeRequest\.auctions +13 +missing$/m)
    assert.match(newer.stdout, /^newer-client@9\.1\.0 +field +SubscribeRequest\.from_slot +14 +11$/m)
    assert.match(newer.stdout, /^newer-client@9\.1\.0: \d+ declarations, 7 new$/m)
    const empty = await runScript(folder, registry.url, ['empty-client'])
    assert.equal(empty.code, 1)
    assert.match(empty.stdout, /empty-client@1\.0\.0 declares nothing that this script can read/)
  })
})

type TestFolder = ReturnType<typeof makeTestFolder>
type Files = Readonly<Record<string, string>>

/** A registry of the packages, each with one version that is the latest. */
async function startRegistry(folder: TestFolder, packages: Readonly<Record<string, Files>>) {
  const tarballs = new Map<string, Buffer>()
  for (const [name, files] of Object.entries(packages)) {
    const at = folder.file(`made-${tarballs.size}`)
    writePackage(join(at, 'package'), files)
    tarballs.set(name, execFileSync('tar', ['-czf', '-', '-C', at, 'package']))
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '')
    const tarball = tarballs.get(path.replace(/^\/tarballs\//, ''))
    if (tarball !== undefined && path.startsWith('/tarballs/')) return void response.end(tarball)
    const name = path.slice(1)
    const bytes = tarballs.get(name)
    if (bytes === undefined) return void response.writeHead(404).end('{}')
    const { version } = JSON.parse(packages[name]?.['package.json'] ?? '{}') as { version: string }
    const dist = {
      tarball: `${url}/tarballs/${encodeURIComponent(name)}`,
      integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
    }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: { name, version, dist } } }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

async function runScript(folder: TestFolder, registry: string, names: readonly string[]) {
  const child = spawn(process.execPath, [SCRIPT, ...names], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder.path,
      TMPDIR: folder.path,
      npm_config_registry: registry,
      npm_config_cache: folder.file('cache'),
      npm_config_update_notifier: 'false',
    },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += String(chunk)))
  child.stderr.on('data', (chunk) => (stderr += String(chunk)))
  const [code] = (await once(child, 'close')) as [number]
  return { code, stdout, stderr }
}
