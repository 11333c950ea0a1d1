import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ServiceError } from '../core/error.ts'
import { readTopLevelText } from '../platform/config/file.ts'
import { type RunningProcess, runningProcesses } from '../platform/process/running-processes.ts'
import {
  DEFAULT_CONFIG,
  defaultState,
  namedConfigOf,
  namedStateOf,
  SYSTEM_CONFIG,
} from '../processes/compose/config/settings.ts'
import type { CliContext, CommonFlags } from './define.ts'
import { write } from './output/print.ts'

/** The state folder that a command is about. */
type Located = {
  readonly stateDir: string
  /** The config file that a flag, the environment or the present folder names, or the one of the machine. */
  readonly configFile: string | undefined
  /** Whether `configFile` was named by a flag or the environment: then the running process is not asked for its own. */
  readonly isConfigNamed: boolean
}

/**
 * Finds the state folder; the first match wins:
 * 1. `--state`, `SLUICE_STATE`
 *
 * With a config file, named or `./sluice.toml`:
 * 2. its `state`
 * 3. the process that runs on that file
 * 4. `./.sluice`
 *
 * Without one:
 * 5. `./.sluice`, if it exists
 * 6. the process on the `state` of /etc/sluice/sluice.toml
 * 7. the only other process (`chooseProcess`)
 * 8. that `state`, else `./.sluice`
 *
 * Creates nothing. Prints what it chose when the command line and the present folder do not show it.
 */
export function locate(context: CliContext, flags: CommonFlags, machineConfig = SYSTEM_CONFIG): Located {
  const named = namedConfigOf(context, flags)
  const here = existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined
  const config = named ?? here
  const ofMachine = existsSync(machineConfig) ? machineConfig : undefined
  const isConfigNamed = named !== undefined
  const namedState = namedStateOf(context, flags)
  if (namedState !== undefined) return { stateDir: namedState, configFile: config ?? ofMachine, isConfigNamed }

  const running = runningProcesses(context.process.env)
  const local = defaultState()
  if (config !== undefined) {
    const file = resolve(config)
    return { stateDir: stateNamedIn(file) ?? stateOfProcess(file, running) ?? local, configFile: config, isConfigNamed }
  }
  if (existsSync(local)) {
    const others = running.filter(({ state }) => state !== local)
    if (others.length === running.length && others.length > 0)
      note(
        context,
        flags,
        `this uses ${local}; running now: ${others.map(describe).join(', ')}; choose with --state DIR`,
      )
    return { stateDir: local, configFile: ofMachine, isConfigNamed }
  }
  const stateOfMachine = ofMachine && stateNamedIn(ofMachine)
  const process =
    running.find(({ state }) => state === stateOfMachine) ?? chooseProcess(running, ofMachine, stateOfMachine)
  if (process !== undefined) {
    note(context, flags, `using ${describe(process)}`)
    return { stateDir: process.state, configFile: process.config ?? undefined, isConfigNamed }
  }
  const stateDir = stateOfMachine ?? local
  if (ofMachine !== undefined) note(context, flags, `using ${ofMachine} and the state folder ${stateDir}`)
  return { stateDir, configFile: ofMachine, isConfigNamed }
}

/**
 * The only process, apart from chains. Where the file of the machine names a state folder that is there, its service is stopped, and commands are about
 * that folder: the units beside it, which have the same file and folders of their own, are not chosen in its place.
 */
function chooseProcess(
  running: readonly RunningProcess[],
  machineConfig: string | undefined,
  machineState: string | undefined,
): RunningProcess | undefined {
  const isInstalled = machineState !== undefined && existsSync(machineState)
  const isBeside = ({ config }: RunningProcess) => isInstalled && config === machineConfig
  const chosen = onlyOne(running.filter((process) => process.isChain !== true && !isBeside(process)))
  return chosen ?? (isInstalled ? undefined : onlyOne(running))
}

/** The state folder of the process that runs on a config file; of several, the one of the present folder. */
function stateOfProcess(file: string, running: readonly RunningProcess[]): string | undefined {
  const onFile = running.filter(({ config }) => config === file)
  return (onFile.find(({ state }) => state === defaultState()) ?? onlyOne(onFile))?.state
}

/** A sentence about the processes that run elsewhere, for errors about this folder; empty when there are none. */
export function runningElsewhere(context: CliContext, stateDir: string): string {
  const others = runningProcesses(context.process.env).filter(({ state }) => state !== stateDir)
  return others.length === 0 ? '' : ` Running now: ${others.map(describe).join(', ')}.`
}

function onlyOne(running: readonly RunningProcess[]): RunningProcess | undefined {
  if (running.length < 2) return running[0]
  throw new ServiceError(
    'usage',
    `several Sluice processes are running, and this folder belongs to none of them:\n${running.map((process) => `  ${describe(process)}`).join('\n')}`,
    { fix: `Choose one with --state DIR, such as --state ${running[0]?.state}` },
  )
}

function describe({ pid, state, config }: RunningProcess): string {
  return `process ${pid} on ${state} (${config ?? 'no config file'})`
}

/** `state` of a config file. A file that cannot be read is reported by the command that needs it. */
function stateNamedIn(file: string): string | undefined {
  const state = readTopLevelText(file, 'state')
  return state === undefined ? undefined : resolve(dirname(file), state)
}

const NOTED = new WeakSet<object>()

/** Once per command, and not among JSON. */
function note(context: CliContext, flags: CommonFlags, message: string): void {
  if (flags.json === true || NOTED.has(context)) return
  NOTED.add(context)
  write(context, message)
}
