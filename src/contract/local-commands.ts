/**
 * Commands without a route of the admin API, and why each is run on the machine itself. `sluice --remote` refuses them with this reason, and
 * docs/admin-api.md lists them; a test compares both with the commands that exist.
 */
export const LOCAL_COMMANDS: Readonly<Record<string, string>> = {
  init: 'writes the files of a new installation',
  serve: 'starts the process that has the API',
  doctor: 'checks the machine it runs on',
  reload: 'reads the configuration file of the machine',
  drain: 'stops the process that has the API',
  'node test': 'connects from the machine it runs on, with credentials of the configuration',
  'upstream test': 'connects from the machine it runs on, with credentials of the configuration',
  'bench stream': 'connects from the machine it runs on',
  'shred inspect': 'reads a file of the machine',
  'shred listen': 'receives packets on the machine',
  'indexer run': 'starts a process',
  'indexer backfill': 'is long work on the data of the machine, watched in a terminal',
  'indexer query': 'runs SQL without the limits of a subscription',
  'tip accounts': 'reads key files of the machine',
  'tip check': 'only computes, without the store',
  'tip revenue': 'reads the ledger of tips, a file of the machine',
  'ring inspect': 'reads shared memory of the machine',
  'ring fold': 'reads shared memory of the machine',
  'ring record': 'reads shared memory of the machine',
  'ring watch': 'reads shared memory of the machine',
  localnet: 'runs a chain for tests',
  'localnet run': 'runs a chain for tests',
  'localnet set': 'changes a chain for tests',
  gateway: 'starts a process',
  execution: 'starts a process',
  sender: 'starts a process',
  shreds: 'starts a process',
  'logs tail': 'follows the log of the process in a terminal',
  backup: 'writes a file with secrets on the machine',
  restore: 'replaces the store while no process runs',
  'config check': 'reads the configuration file of the machine',
  'config show': 'reads the configuration file of the machine',
  'config schema': 'only prints',
  docs: 'only prints',
  'completion bash': 'only prints',
  'completion zsh': 'only prints',
  'completion fish': 'only prints',
  version: 'only prints',
}

/** Commands with a route whose flag has none. */
export const LOCAL_FLAGS: Readonly<Record<string, string>> = {
  'shred report --decoded': 'reads the newest slots from the memory of the process',
}
