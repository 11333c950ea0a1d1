/**
 * Compares the protocol files and the method list here with the newest client packages of the configured npm registry, and prints what they have
 * and Sluice has not. Exit code 1 if there is any. It needs the network, so no test runs it against the registry; run it weekly:
 *
 *     npm run drift                        # the packages below
 *     npm run drift -- PACKAGE [PACKAGE…]
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PUBSUB_KINDS, RPC_METHODS } from '../src/contract/rpc-methods.ts'
import { readClientPackage } from './drift/client-package.ts'
import { createProtocol, type Protocol, readProtoText } from './drift/proto-text.ts'

const PACKAGES = [
  '@triton-one/yellowstone-grpc',
  'helius-laserstream',
  '@solana/rpc-api',
  '@solana/rpc-subscriptions-api',
] as const

/** Differences that need no change, by kind and name, with the reason. */
const KNOWN_DIFFERENCES: readonly (readonly [difference: RegExp, reason: string])[] = [
  [
    /^(?:rpc Geyser\/|message )SubscribePreprocessed/,
    'an extension of one vendor, passed on where a plan does not restrict kinds',
  ],
  [/^message Confirmed(?:Block|Transaction)$/, 'stored blocks, which no method of Geyser sends'],
  [/^method getTransactionsForAddress$/, 'an extension of some vendors, passed on at the default cost'],
]

export type Drift = {
  readonly what: 'rpc' | 'message' | 'field' | 'enum value' | 'method' | 'subscription'
  readonly name: string
  /** Number in the package, where it has numbers. */
  readonly number: number | undefined
  /** The number here if it is another one. */
  readonly here: number | undefined
}

/** What `theirs` has and `ours` has not, or has with another number. The fields of a new message are not listed. */
export function findDrift(ours: Protocol, theirs: Protocol): Drift[] {
  const found: Drift[] = []
  const add = (what: Drift['what'], name: string, numbers: Partial<Pick<Drift, 'number' | 'here'>> = {}) => {
    if (KNOWN_DIFFERENCES.some(([difference]) => difference.test(`${what} ${name}`))) return
    found.push({ what, name, number: numbers.number, here: numbers.here })
  }
  const addNames = (what: Drift['what'], own: ReadonlySet<string>, names: ReadonlySet<string>) => {
    for (const name of names) if (!own.has(name)) add(what, name)
  }
  addNames('rpc', ours.rpcs, theirs.rpcs)
  addNames('message', ours.messages, theirs.messages)
  for (const [name, number] of theirs.fields) {
    const message = name.slice(0, name.indexOf('.'))
    if (!ours.messages.has(message)) continue
    const here = ours.fields.get(name)
    if (here === undefined) add('field', name, { number })
    else if (number !== undefined && number !== here) add('field', name, { number, here })
  }
  for (const [name, number] of theirs.enumValues) {
    const here = ours.enumValues.get(name)
    if (here === undefined || here !== number) add('enum value', name, { number, here })
  }
  addNames('method', ours.methods, theirs.methods)
  addNames('subscription', ours.subscriptions, theirs.subscriptions)
  return found
}

export function readOwnProtocol(): Protocol {
  const ours = createProtocol()
  for (const name of ['geyser.proto', 'solana-storage.proto'])
    readProtoText(readFileSync(new URL(`../proto/${name}`, import.meta.url), 'utf8'), ours)
  for (const method of Object.keys(RPC_METHODS)) ours.methods.add(method)
  for (const kind of PUBSUB_KINDS) ours.subscriptions.add(kind)
  return ours
}

type Fetched = { readonly name: string; readonly version: string; readonly folder: string }

/** Through npm, which has the registry, certificate and credentials configured; it runs no script of the package. */
function fetchNewest(name: string, into: string): Fetched {
  const folder = mkdtempSync(join(into, 'package-'))
  const packed = execFileSync('npm', ['pack', `${name}@latest`, '--json', '--pack-destination', folder], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [{ version, filename }] = JSON.parse(packed) as [{ version: string; filename: string }]
  const unpacked = join(folder, 'unpacked')
  mkdirSync(unpacked)
  // npm reports `@scope/name-1.0.0.tgz` for the file `scope-name-1.0.0.tgz`.
  execFileSync('tar', ['-xzf', join(folder, filename.replace('@', '').replace('/', '-')), '-C', unpacked])
  return { name, version, folder: unpacked }
}

export type PackageDrift = { readonly package: string; readonly items: number; readonly drift: readonly Drift[] }

/** A table with one row for each difference, then a line for each package. */
export function printDrift(packages: readonly PackageDrift[]): string {
  const rows = packages.flatMap((from) =>
    from.drift.map(({ what, name, number, here }) => [
      from.package,
      what,
      name,
      number === undefined ? '-' : String(number),
      here === undefined ? 'missing' : String(here),
    ]),
  )
  const table = rows.length === 0 ? [] : [['PACKAGE', 'WHAT', 'NAME', 'NUMBER', 'HERE'], ...rows]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(0, ...table.map((row) => row[column]?.length ?? 0)))
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const sums = packages.map(({ package: name, items, drift }) => `${name}: ${items} declarations, ${drift.length} new`)
  return [...lines, ...sums].join('\n')
}

function sizeOf(protocol: Protocol): number {
  return Object.values(protocol).reduce((sum, declared) => sum + declared.size, 0)
}

if (import.meta.main) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-drift-'))
  try {
    const ours = readOwnProtocol()
    const given = process.argv.slice(2)
    const packages = (given.length > 0 ? given : PACKAGES).map((name): PackageDrift => {
      const { version, folder: unpacked } = fetchNewest(name, folder)
      const theirs = readClientPackage(unpacked)
      return { package: `${name}@${version}`, items: sizeOf(theirs), drift: findDrift(ours, theirs) }
    })
    process.stdout.write(`${printDrift(packages)}\n`)
    const unread = packages.filter(({ items }) => items === 0)
    for (const { package: name } of unread)
      process.stdout.write(`${name} declares nothing that this script can read: look at its files\n`)
    process.exitCode = unread.length === 0 && packages.every(({ drift }) => drift.length === 0) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
