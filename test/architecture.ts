import { posix } from 'node:path'
import type { Import, SourceFacts } from './read-source.ts'
import { findSlowShape } from './regex-shape.ts'

/** One module: which modules, Node built-ins and npm packages it may import. */
export type ModulePlan = {
  layer: number
  sees: readonly string[]
  /** `pure`: a closed list without I/O, for types too. `service`: what computes, and types of the rest. `system`: all. */
  node: 'pure' | 'service' | 'system'
  /** Node modules allowed beyond the above. */
  nodeExtra?: readonly string[]
  /** npm packages by name, or `all` that package.json lists as dependencies. */
  npm: 'all' | readonly string[]
}

export type Plan = {
  modules: Readonly<Record<string, ModulePlan>>
  /** Packages that the files of one path may import besides those of their module. */
  npmExceptions: readonly { path: RegExp; npm: readonly string[] }[]
  pureNode: readonly string[]
  serviceNode: readonly string[]
  consoleFiles: RegExp
  exitFiles: RegExp
  generated: RegExp
  linesMax: number
  /** Words that no identifier and no file name may contain, each with the word of the field for the thing. */
  refusedWords: ReadonlyMap<string, string>
  /** Names of formats that contain a refused word. */
  nameExceptions: readonly { path: RegExp; names: readonly string[] }[]
  dependencies: ReadonlySet<string>
}

export type Objection = { rule: string; at: string; message: string }

const TEST_FILE = /\.test\.ts$/
const TEST_HELPER = /\/test-[^/]*\.ts$/

/** Every violation of the plan; empty when the files follow it. */
export function findObjections(files: readonly SourceFacts[], plan: Plan): Objection[] {
  return [
    ...files.flatMap((file) => [
      ...objectToFile(file, plan),
      ...objectToImports(file, plan),
      ...findRefusedWords(file, plan),
    ]),
    ...findCycles(files),
  ]
}

function* objectToFile(file: SourceFacts, plan: Plan): Generator<Objection> {
  const { path } = file
  if (moduleOf(path) === undefined || plan.modules[moduleOf(path) ?? ''] === undefined) {
    yield { rule: 'module', at: path, message: 'belongs to no module of the plan' }
  }
  if (plan.generated.test(path)) return
  if (file.lines > plan.linesMax) {
    yield { rule: 'length', at: path, message: `has ${file.lines} lines, at most ${plan.linesMax} are allowed` }
  }
  if (posix.basename(path) === 'index.ts' || file.onlyPassesOn) {
    yield { rule: 'barrel', at: path, message: 'is a barrel: import from the file that owns the thing' }
  }
  for (const line of file.starExportLines) {
    yield { rule: 'barrel', at: `${path}:${line}`, message: 'export * hides who owns what' }
  }
  for (const line of file.defaultExportLines) {
    yield { rule: 'default-export', at: `${path}:${line}`, message: 'has a default export; exports have names' }
  }
  if (TEST_FILE.test(path)) return
  for (const { text, line } of TEST_HELPER.test(path) ? [] : file.regularExpressions) {
    const shape = text === undefined ? 'put together at run time, where its shape cannot be read' : findSlowShape(text)
    if (shape !== undefined)
      yield { rule: 'regex', at: `${path}:${line}`, message: `${text ?? 'RegExp'} is slow: ${shape}` }
  }
  for (const line of plan.consoleFiles.test(path) ? [] : file.consoleLines) {
    yield { rule: 'console', at: `${path}:${line}`, message: 'uses console; only the command line talks to a terminal' }
  }
  for (const line of plan.exitFiles.test(path) ? [] : file.exitLines) {
    yield { rule: 'exit', at: `${path}:${line}`, message: 'ends the process; only processes and cli may' }
  }
}

function* objectToImports(file: SourceFacts, plan: Plan): Generator<Objection> {
  const moduleName = moduleOf(file.path)
  const module = plan.modules[moduleName ?? '']
  if (moduleName === undefined || module === undefined) return
  for (const used of file.imports) {
    const message = objectToImport(used, { file, moduleName, module, plan })
    if (message !== undefined) yield { ...message, at: `${file.path}:${used.line}` }
  }
}

type ReadImport = Import & { specifier: string }
type Importer = { file: SourceFacts; moduleName: string; module: ModulePlan; plan: Plan }

function objectToImport(used: Import, importer: Importer): Omit<Objection, 'at'> | undefined {
  const { specifier } = used
  if (specifier === undefined) {
    if (TEST_FILE.test(importer.file.path)) return undefined
    return { rule: 'unreadable', message: 'names a file by an expression; write the path as a plain string' }
  }
  if (specifier.startsWith('.')) return objectToModuleImport({ ...used, specifier }, importer)
  if (used.form === 'url') return undefined
  if (specifier.startsWith('node:') || used.form === 'builtin')
    return objectToNodeImport({ ...used, specifier }, importer)
  return objectToPackageImport(specifier, importer)
}

function objectToModuleImport(
  used: ReadImport,
  { file, moduleName, module, plan }: Importer,
): Omit<Objection, 'at'> | undefined {
  const target = resolvePath(file.path, used.specifier)
  const isTest = TEST_FILE.test(file.path)
  if (!target.startsWith('src/')) {
    if (used.form === 'url' || target === 'package.json' || (isTest && target.startsWith('test/'))) return undefined
    return { rule: 'outside', message: `reaches out of src to ${target}` }
  }
  if (TEST_FILE.test(target) && !isTest) return { rule: 'outside', message: `imports a test, ${target}` }
  const targetName = moduleOf(target)
  if (targetName === moduleName) return undefined
  const targetModule = plan.modules[targetName ?? '']
  if (targetName === undefined || targetModule === undefined) {
    return { rule: 'module', message: `imports ${target}, which belongs to no module of the plan` }
  }
  if (module.sees.includes(targetName)) return undefined
  const direction =
    targetModule.layer > module.layer
      ? 'up'
      : targetModule.layer === module.layer
        ? 'sideways'
        : 'down, but not by plan,'
  return {
    rule: 'direction',
    message: `${moduleName} imports ${direction} from ${targetName} (${used.form} ${used.specifier})`,
  }
}

function objectToNodeImport(
  used: ReadImport,
  { file, moduleName, module, plan }: Importer,
): Omit<Objection, 'at'> | undefined {
  const name = used.specifier.replace(/^node:/, '')
  // The console and exit rules look at the globals only.
  if (name === 'process' || name === 'console') {
    return { rule: 'node', message: `imports node:${name}; use the global, where the rules can see it` }
  }
  if (TEST_FILE.test(file.path) || module.node === 'system' || module.nodeExtra?.includes(name) === true)
    return undefined
  if (module.node === 'service' && used.form === 'type') return undefined
  const allowed = module.node === 'pure' ? plan.pureNode : plan.serviceNode
  if (allowed.includes(name)) return undefined
  return { rule: 'node', message: `${moduleName} imports node:${name}; I/O arrives through platform or as a dep` }
}

function objectToPackageImport(
  specifier: string,
  { file, moduleName, module, plan }: Importer,
): Omit<Objection, 'at'> | undefined {
  if (TEST_FILE.test(file.path)) return undefined
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  if (!plan.dependencies.has(name)) {
    return { rule: 'npm', message: `imports ${name}, which package.json does not list under dependencies` }
  }
  if (module.npm === 'all' || module.npm.includes(name)) return undefined
  if (plan.npmExceptions.some(({ path, npm }) => path.test(file.path) && npm.includes(name))) return undefined
  return { rule: 'npm', message: `${moduleName} imports ${name}; libraries enter through platform` }
}

/** Identifiers and file names with a word of `plan.refusedWords` in them. */
export function* findRefusedWords(file: SourceFacts, plan: Plan): Generator<Objection> {
  const { path } = file
  if (plan.generated.test(path)) return
  const excepted = new Set(plan.nameExceptions.flatMap((each) => (each.path.test(path) ? each.names : [])))
  for (const [text, { line }] of [[posix.basename(path), { line: 0 }] as const, ...file.names]) {
    if (excepted.has(text)) continue
    const words = text.split(/(?=[A-Z][a-z])|[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map((word) => word.toLowerCase())
    const refused = words.find(
      (word, at) => plan.refusedWords.has(word) && !(word === 'house' && words[at - 1] === 'click'),
    )
    if (refused === undefined) continue
    const at = line === 0 ? path : `${path}:${line}`
    yield { rule: 'word', at, message: `${text} contains "${refused}"; write: ${plan.refusedWords.get(refused)}` }
  }
}

/** Files that import each other, types included: each strongly connected group of more than one file. */
function findCycles(files: readonly SourceFacts[]): Objection[] {
  const targets = new Map(files.map((file) => [file.path, filesImportedBy(file)]))
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
    const cycle = group.filter((member) => targets.has(member)).toSorted()
    if (cycle.length < 2) return []
    return [{ rule: 'cycle', at: cycle[0] ?? path, message: `imports itself through ${cycle.slice(1).join(', ')}` }]
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

/** Without what is loaded while the program runs: a command's definition names the file that runs it. */
function filesImportedBy(file: SourceFacts): string[] {
  return file.imports
    .filter(({ form }) => form === 'static' || form === 'type' || form === 're-export' || form === 'require')
    .flatMap(({ specifier }) => (specifier?.startsWith('.') === true ? [resolvePath(file.path, specifier)] : []))
}

function resolvePath(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

function moduleOf(path: string): string | undefined {
  const [top, module, ...rest] = path.split('/')
  return top === 'src' && rest.length > 0 ? module : undefined
}
