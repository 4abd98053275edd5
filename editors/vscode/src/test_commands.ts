// The commands of tests, profiles and recordings.
import * as vscode from 'vscode'
import { placeHere } from './evaluate.js'
import type { Features, Register } from './features.js'
import { testText } from './format.js'
import { tellOfTests } from './frozen.js'
import type { TestReport } from './lsp_ext.js'
import { complain } from './server.js'
import { chooseSystem, type System } from './trees.js'

export function registerTestCommands(features: Features, command: Register): void {
  const { server, documents, profiles, recordings, tests } = features
  command('testSystem', async (system?: System) => {
    const name = system?.name ?? (await chooseSystem('Test a System'))
    if (name !== undefined) await tests.runSystem(name)
  })
  command('runTestAtPoint', async () => {
    const place = placeHere()
    if (place === undefined) return
    try {
      const report = await server.run<TestReport>('runTestAtPoint', place)
      if (report.success) vscode.window.setStatusBarMessage(`$(pass) ${report.passed} passed`, 5000)
      else {
        await documents.open('report/test.txt', testText(report), { language: 'plaintext' })
        void tellOfTests(server, report).catch(complain)
      }
    } catch (error) {
      complain(error)
    }
  })
  command('profile', () => profiles.profileForm())
  command('recordForm', () => recordings.recordForm())
  command('recordNextCall', () => recordings.recordNextCall())
  command('stepRecording', () => recordings.stepThroughLast())
  command('recordTest', (test?: vscode.TestItem) => tests.recordTest(test).catch(complain))
}
