import {
  type Aliases,
  buildCommand,
  type Command,
  type CommandContext,
  type FlagParametersForType,
} from '@stricli/core'
import type { RemoteTarget } from './remote/target.ts'

/** The process that a command runs in; tests pass their own. */
export type CliContext = CommandContext & {
  readonly process: NodeJS.Process
  /** The process of `--remote`; undefined for the one of this machine. */
  readonly remote?: RemoteTarget | undefined
}

/** Flags that every command takes. */
export type CommonFlags = {
  readonly config?: string
  readonly state?: string
  readonly json?: boolean
}

/** Flags of commands that change customers. */
export type ChangeFlags = CommonFlags & { readonly dryRun?: boolean }

/** Flags of commands that may be the first on a new store. */
export type CreateStoreFlags = ChangeFlags & { readonly createStore?: boolean }

/** Flags of commands that interrupt live service. */
export type ConfirmFlags = ChangeFlags & { readonly yes?: boolean }

/** Flags of commands that print a list. */
export type ListFlags = CommonFlags & { readonly output?: OutputFormat }

/** Flags of commands that show a secret, once. */
export type SecretFlags = ChangeFlags & { readonly printToken?: boolean; readonly out?: string }

export type OutputFormat = 'table' | 'wide' | 'json' | 'csv'

const text = (input: string): string => input

const optionalText = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: text, optional: true, brief, placeholder }) as const
const optionalSwitch = (brief: string) => ({ kind: 'boolean', optional: true, withNegated: false, brief }) as const

const required = (brief: string, placeholder: string) => ({ kind: 'parsed', parse: text, brief, placeholder }) as const
const choice = <const Value extends string>(brief: string, values: readonly Value[]) =>
  ({ kind: 'enum', values, optional: true, brief }) as const

/** The kinds of flags; all but `required` are optional. */
export const flag = { text: optionalText, switch: optionalSwitch, required, choice }

export const commonFlags = {
  config: optionalText('Config file (default: of the running process, or ./sluice.toml)', 'FILE'),
  state: optionalText('State folder (default: of the running process, or ./.sluice)', 'DIR'),
  json: optionalSwitch('Print JSON'),
} as const

/** Flags of commands that run a process. */
export type ServiceFlags = CommonFlags & { readonly log?: 'text' | 'json' }

export const serviceFlags = {
  config: optionalText('Config file (default ./sluice.toml, then /etc/sluice/sluice.toml, if it exists)', 'FILE'),
  state: optionalText('State folder (default: state of the config file, then ./.sluice)', 'DIR'),
  json: optionalSwitch('Print JSON'),
  log: choice('Format of the log (default: text on a terminal, else json)', ['text', 'json']),
} as const

export const changeFlags = { ...commonFlags, dryRun: optionalSwitch('Validate only, change nothing') } as const

export const firstFlags = {
  ...changeFlags,
  createStore: optionalSwitch('Make the access store if there is none'),
} as const

export const cutFlags = { ...changeFlags, yes: optionalSwitch('Skip the confirmation') } as const

export const listFlags = {
  ...commonFlags,
  output: choice('Output format', ['table', 'wide', 'json', 'csv']),
} as const

export const secretFlags = {
  ...changeFlags,
  printToken: optionalSwitch('Print the secret even if standard output is not a terminal'),
  out: optionalText('Write the secret to a new file of mode 0600 instead of printing it', 'FILE'),
} as const

/** A required positional argument. */
export const argument = (placeholder: string, brief: string) => ({ placeholder, brief, parse: text }) as const
export const subscriptionArgument = argument('SUB', 'Subscription name or id')
/** An optional positional argument. */
export const optionalArgument = (placeholder: string, brief: string) =>
  ({ placeholder, brief, parse: text, optional: true }) as const

type ArgumentsFor<A extends readonly unknown[]> = {
  readonly [At in keyof A]-?: ReturnType<undefined extends A[At] ? typeof optionalArgument : typeof argument>
}

/** Flags `F` and arguments `A` are those of the function that runs the command. */
export type CommandSpec<F extends CommonFlags, A extends readonly unknown[]> = {
  readonly brief: string
  readonly details?: string
  /** Arguments after the command name. Shown at the top of the help, and run by a test. */
  readonly examples: readonly string[]
  /** `-o` stands for `--output` where there is such a flag. */
  readonly aliases?: Aliases<keyof F & string>
  /** The code of the command, loaded only when it runs. */
  readonly load: () => Promise<(this: CliContext, flags: F, ...args: A) => Promise<void>>
} & (keyof F extends keyof CommonFlags
  ? { readonly flags?: FlagParametersForType<F, CliContext> }
  : { readonly flags: FlagParametersForType<F, CliContext> }) &
  ([] extends A ? { readonly args?: ArgumentsFor<A> } : { readonly args: ArgumentsFor<A> })

const EXAMPLES = new WeakMap<object, readonly string[]>()

export function command<F extends CommonFlags, A extends readonly unknown[]>(
  spec: CommandSpec<F, A>,
): Command<CliContext> {
  const { brief, details, examples, aliases, load, flags = commonFlags, args = [] } = spec
  const built = buildCommand<F, A, CliContext>({
    loader: load,
    parameters: {
      flags,
      aliases: { ...('output' in flags ? { o: 'output' } : {}), ...aliases },
      positional: { kind: 'tuple', parameters: args },
    },
    docs: {
      brief,
      ...(details === undefined ? {} : { fullDescription: `${brief}\n${details}` }),
      customUsage: examples,
    },
  } as unknown as Parameters<typeof buildCommand<F, A, CliContext>>[0])
  EXAMPLES.set(built, examples)
  return built
}

/** The examples of a command, for the test that runs them. */
export function examplesOf(built: object): readonly string[] {
  return EXAMPLES.get(built) ?? []
}
