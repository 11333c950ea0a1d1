import { readFileSync } from 'node:fs'

/** Loaded before a process under test: it takes as much memory as the file of this name says. */
const file = process.env['TEST_RESIDENT_BYTES_FILE'] ?? ''
process.memoryUsage.rss = () => Number(readFileSync(file, 'utf8'))
