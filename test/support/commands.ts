import { rootRoutes } from '../../src/cli/application.ts'
import { examplesOf } from '../../src/cli/define.ts'

export type CommandRoute = {
  /** The words after `sluice`. */
  readonly path: readonly string[]
  readonly brief: string
  readonly examples: readonly string[]
  readonly flags: ReadonlySet<string>
}

/** What is used of the command-line library's own objects. */
type Target = {
  readonly brief: string
  readonly parameters?: { readonly flags?: Readonly<Record<string, unknown>> }
  getAllEntries?(): readonly { name: Record<string, string>; target: Target }[]
}

/** Every command there is, found by walking the routes. */
export const COMMANDS: readonly CommandRoute[] = [...walk(rootRoutes as unknown as Target)]

function* walk(target: Target, path: string[] = []): Generator<CommandRoute> {
  if (target.getAllEntries === undefined) {
    const flags = Object.keys(target.parameters?.flags ?? {}).map((name) =>
      name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    )
    yield { path, brief: target.brief, examples: examplesOf(target), flags: new Set([...flags, 'help']) }
  } else
    for (const { name, target: inner } of target.getAllEntries())
      yield* walk(inner, [...path, name['convert-camel-to-kebab'] ?? ''])
}

/** Commands that a text names, those of fences and those set as code in a line: all that stands after `sluice`. */
export function commandsNamedIn(markdown: string): string[] {
  const whole = markdown.replaceAll(/\\\n\s*/g, ' ')
  return [
    ...whole.matchAll(/(?<=^|[\s`(])(?:[\w./]*\/)?sluice (?=[a-z])(?!sluice )([^`|;&>#)\n]*(?:\|[a-z-]+)*)/gm),
  ].map(([, words = '']) => words.trim())
}

/** What is wrong with a command that a document names, if anything. `show|pause` stands for both. */
export function faultOf(line: string): string | undefined {
  const [first = '', second = '', ...rest] = line.split(/\s+/)
  for (const name of second.split('|')) {
    const route =
      COMMANDS.find(({ path }) => path.length === 2 && path[0] === first && path[1] === name) ??
      COMMANDS.find(({ path }) => path.length === 1 && path[0] === first)
    if (route === undefined) return `there is no command: sluice ${first} ${name}`.trimEnd()
    for (const word of [second, ...rest].filter((each) => each.startsWith('--'))) {
      const flag = word.slice(2).replace(/[=.,].*/, '')
      if (!route.flags.has(flag) && !route.flags.has(flag.replace(/^no-/, '')))
        return `sluice ${route.path.join(' ')} has no --${flag}`
    }
  }
  return undefined
}
