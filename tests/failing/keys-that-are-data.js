const byName = { 'O\'Brien "x"': 1, 'line\nbreak': 2, ['\u202e\u001b[2Jevil']: 3, ['k'.repeat(90)]: 4 };
return byName.nobody.age;
