import { readFileSync } from 'node:fs'

/** Loaded before a process under test: it takes as much memory as the file of this name says. */
const file = process.env['TEST_RESIDENT_BYTES_FILE'] ?? ''
const rss = () => Number(readFileSync(file, 'utf8'))
const measure = process.memoryUsage
process.memoryUsage = Object.assign(() => ({ ...measure(), rss: rss() }), { rss })
