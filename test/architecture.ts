import { posix } from 'node:path'
import type { Import, SourceFacts } from './read-source.ts'
import { findSlowShape } from './regex-shape.ts'

/** One room: what it may import of the house, of Node and of npm. */
export type Room = {
  floor: number
  sees: readonly string[]
  /** `pure`: a closed list without I/O, for types too. `service`: what computes, and types of the rest. `system`: all. */
  node: 'pure' | 'service' | 'system'
  /** Node modules allowed beyond the above. */
  nodeExtra?: readonly string[]
  /** npm packages by name, or `all` that package.json lists as dependencies. */
  npm: 'all' | readonly string[]
}

export type Plan = {
  rooms: Readonly<Record<string, Room>>
  /** Packages that one named place may import, whatever its room says. */
  npmPlaces: readonly { place: RegExp; npm: readonly string[] }[]
  pureNode: readonly string[]
  serviceNode: readonly string[]
  consolePlaces: RegExp
  exitPlaces: RegExp
  generated: RegExp
  linesMax: number
  dependencies: ReadonlySet<string>
}

export type Objection = { rule: string; at: string; says: string }

const TEST_FILE = /\.test\.ts$/
const TEST_HELPER = /\/test-[^/]*\.ts$/

/** Everything in the files that is against the plan; an empty list means that the house stands as drawn. */
export function findObjections(files: readonly SourceFacts[], plan: Plan): Objection[] {
  return [
    ...files.flatMap((file) => [...objectToFile(file, plan), ...objectToImports(file, plan)]),
    ...findCycles(files),
  ]
}

function* objectToFile(file: SourceFacts, plan: Plan): Generator<Objection> {
  const { path } = file
  if (roomOf(path) === undefined || plan.rooms[roomOf(path) ?? ''] === undefined) {
    yield { rule: 'room', at: path, says: 'stands in no room of the plan' }
  }
  if (plan.generated.test(path)) return
  if (file.lines > plan.linesMax) {
    yield { rule: 'length', at: path, says: `has ${file.lines} lines, at most ${plan.linesMax} are allowed` }
  }
  if (posix.basename(path) === 'index.ts' || file.onlyPassesOn) {
    yield { rule: 'barrel', at: path, says: 'is a barrel: import from the file that owns the thing' }
  }
  for (const line of file.starExportLines) {
    yield { rule: 'barrel', at: `${path}:${line}`, says: 'export * hides who owns what' }
  }
  for (const line of file.defaultExportLines) {
    yield { rule: 'default-export', at: `${path}:${line}`, says: 'has a default export; exports have names' }
  }
  if (TEST_FILE.test(path)) return
  for (const { text, line } of TEST_HELPER.test(path) ? [] : file.regularExpressions) {
    const shape = text === undefined ? 'put together at run time, where its shape cannot be read' : findSlowShape(text)
    if (shape !== undefined)
      yield { rule: 'regex', at: `${path}:${line}`, says: `${text ?? 'RegExp'} is slow: ${shape}` }
  }
  for (const line of plan.consolePlaces.test(path) ? [] : file.consoleLines) {
    yield { rule: 'console', at: `${path}:${line}`, says: 'uses console; only the command line talks to a terminal' }
  }
  for (const line of plan.exitPlaces.test(path) ? [] : file.exitLines) {
    yield { rule: 'exit', at: `${path}:${line}`, says: 'ends the process; only processes and cli may' }
  }
}

function* objectToImports(file: SourceFacts, plan: Plan): Generator<Objection> {
  const roomName = roomOf(file.path)
  const room = plan.rooms[roomName ?? '']
  if (roomName === undefined || room === undefined) return
  for (const used of file.imports) {
    const says = objectToImport(used, { file, roomName, room, plan })
    if (says !== undefined) yield { ...says, at: `${file.path}:${used.line}` }
  }
}

type ReadImport = Import & { specifier: string }
type Place = { file: SourceFacts; roomName: string; room: Room; plan: Plan }

function objectToImport(used: Import, place: Place): Omit<Objection, 'at'> | undefined {
  const { specifier } = used
  if (specifier === undefined) {
    if (TEST_FILE.test(place.file.path)) return undefined
    return { rule: 'unreadable', says: 'names a file by an expression; write the path as a plain string' }
  }
  if (specifier.startsWith('.')) return objectToHouseImport({ ...used, specifier }, place)
  if (used.form === 'url') return undefined
  if (specifier.startsWith('node:') || used.form === 'builtin') return objectToNodeImport({ ...used, specifier }, place)
  return objectToPackageImport(specifier, place)
}

function objectToHouseImport(
  used: ReadImport,
  { file, roomName, room, plan }: Place,
): Omit<Objection, 'at'> | undefined {
  const target = resolvePath(file.path, used.specifier)
  const isTest = TEST_FILE.test(file.path)
  if (!target.startsWith('src/')) {
    if (used.form === 'url' || target === 'package.json' || (isTest && target.startsWith('test/'))) return undefined
    return { rule: 'outside', says: `reaches out of src to ${target}` }
  }
  if (TEST_FILE.test(target) && !isTest) return { rule: 'outside', says: `imports a test, ${target}` }
  const targetName = roomOf(target)
  if (targetName === roomName) return undefined
  const targetRoom = plan.rooms[targetName ?? '']
  if (targetName === undefined || targetRoom === undefined) {
    return { rule: 'room', says: `imports ${target}, which stands in no room of the plan` }
  }
  if (room.sees.includes(targetName)) return undefined
  const way =
    targetRoom.floor > room.floor ? 'up' : targetRoom.floor === room.floor ? 'sideways' : 'down, but not by plan,'
  return { rule: 'direction', says: `${roomName} imports ${way} from ${targetName} (${used.form} ${used.specifier})` }
}

function objectToNodeImport(
  used: ReadImport,
  { file, roomName, room, plan }: Place,
): Omit<Objection, 'at'> | undefined {
  const name = used.specifier.replace(/^node:/, '')
  // The globals are what the console and exit rules look at, so there is no second door to them.
  if (name === 'process' || name === 'console') {
    return { rule: 'node', says: `imports node:${name}; use the global, where the rules can see it` }
  }
  if (TEST_FILE.test(file.path) || room.node === 'system' || room.nodeExtra?.includes(name) === true) return undefined
  if (room.node === 'service' && used.form === 'type') return undefined
  const allowed = room.node === 'pure' ? plan.pureNode : plan.serviceNode
  if (allowed.includes(name)) return undefined
  return { rule: 'node', says: `${roomName} imports node:${name}; I/O arrives through platform or as a dep` }
}

function objectToPackageImport(
  specifier: string,
  { file, roomName, room, plan }: Place,
): Omit<Objection, 'at'> | undefined {
  if (TEST_FILE.test(file.path)) return undefined
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  if (!plan.dependencies.has(name)) {
    return { rule: 'npm', says: `imports ${name}, which package.json does not list under dependencies` }
  }
  if (room.npm === 'all' || room.npm.includes(name)) return undefined
  if (plan.npmPlaces.some(({ place, npm }) => place.test(file.path) && npm.includes(name))) return undefined
  return { rule: 'npm', says: `${roomName} imports ${name}; libraries enter through platform` }
}

/** Files that need each other to be loaded: each strongly connected group of more than one file. */
function findCycles(files: readonly SourceFacts[]): Objection[] {
  const targets = new Map(files.map((file) => [file.path, filesLoadedBy(file)]))
  const order: string[] = []
  const seen = new Set<string>()
  for (const path of targets.keys()) finishOrder(path, targets, seen, order)

  const reversed = new Map<string, string[]>()
  for (const [path, imported] of targets) {
    for (const target of imported) reversed.set(target, [...(reversed.get(target) ?? []), path])
  }
  const grouped = new Set<string>()
  return order.toReversed().flatMap((path) => {
    const group: string[] = []
    finishOrder(path, reversed, grouped, group)
    const inHouse = group.filter((member) => targets.has(member)).toSorted()
    if (inHouse.length < 2) return []
    return [{ rule: 'cycle', at: inHouse[0] ?? path, says: `imports itself through ${inHouse.slice(1).join(', ')}` }]
  })
}

/** Depth first without recursion; a path is added to `order` after everything it leads to. */
function finishOrder(start: string, edges: ReadonlyMap<string, string[]>, seen: Set<string>, order: string[]): void {
  const stack: { path: string; left: string[] }[] = []
  const enter = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    stack.push({ path, left: [...(edges.get(path) ?? [])] })
  }
  enter(start)
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const next = top.left.pop()
    if (next !== undefined) enter(next)
    else order.push((stack.pop() ?? top).path)
  }
}

function filesLoadedBy(file: SourceFacts): string[] {
  return file.imports
    .filter(({ form }) => form === 'static' || form === 're-export' || form === 'require')
    .flatMap(({ specifier }) => (specifier?.startsWith('.') === true ? [resolvePath(file.path, specifier)] : []))
}

function resolvePath(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

function roomOf(path: string): string | undefined {
  const [top, room, ...rest] = path.split('/')
  return top === 'src' && rest.length > 0 ? room : undefined
}
