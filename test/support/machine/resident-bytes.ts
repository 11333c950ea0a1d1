import { readFileSync } from 'node:fs'

/** Loaded before a process under test: allocates the number of bytes that this file contains. */
const file = process.env['TEST_RESIDENT_BYTES_FILE'] ?? ''
const rss = () => Number(readFileSync(file, 'utf8'))
const measure = process.memoryUsage
process.memoryUsage = Object.assign(() => ({ ...measure(), rss: rss() }), { rss })
